package devstack

import (
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
	"go.yaml.in/yaml/v3"

	"github.com/kappactl/kappactl/internal/job"
)

const (
	configFile   = "kappactl.yaml"
	passwordFile = "dsn-password"
)

// settingsFile is the form of kappactl.yaml.
type settingsFile struct {
	Current  string                     `yaml:"current"`
	Contexts map[string]settingsContext `yaml:"contexts"`
}

type settingsContext struct {
	Brokers         []string `yaml:"brokers,flow"`
	DSN             string   `yaml:"dsn"`
	DSNPasswordFile string   `yaml:"dsn_password_file,omitempty"`
	HTTP            string   `yaml:"http"`
}

// writeSettings writes kappactl.yaml; password is that of a given DSN and is kept in a file of its own, or empty.
func writeSettings(dir string, brokers []string, dsn, password, http string) (string, error) {
	c := settingsContext{Brokers: brokers, DSN: dsn, HTTP: http}
	if password != "" {
		c.DSNPasswordFile = filepath.Join(dir, passwordFile)
		if err := writeFile(c.DSNPasswordFile, []byte(password+"\n"), 0o600); err != nil {
			return "", err
		}
	}
	text, err := yaml.Marshal(settingsFile{Current: "dev", Contexts: map[string]settingsContext{"dev": c}})
	if err != nil {
		return "", fmt.Errorf("write %s: %w", configFile, err)
	}
	path := filepath.Join(dir, configFile)
	head := "# Written by kappactl dev at each start. Use it with --config or KAPPACTL_CONFIG.\n"
	return path, writeFile(path, append([]byte(head), text...), 0o644)
}

var passwordWord = regexp.MustCompile(`(?i)(^|\s)password\s*=\s*('(?:[^'\\]|\\.)*'|\S*)`)

// splitPassword takes the password out of a connection string of either form (URL, or key=value words).
func splitPassword(dsn string) (rest, password string, err error) {
	bad := &job.Refusal{Code: job.ExitUsage, Cause: "the connection string given with --dsn cannot be parsed", Next: `write it as "host=… dbname=… user=…" or postgres://…`}
	parsed, err := pgx.ParseConfig(dsn)
	if err != nil {
		return "", "", bad // pgx's own text may hold the string
	}
	if !strings.HasPrefix(dsn, "postgres://") && !strings.HasPrefix(dsn, "postgresql://") {
		if !passwordWord.MatchString(dsn) {
			return dsn, "", nil
		}
		return strings.TrimSpace(passwordWord.ReplaceAllString(dsn, "")), parsed.Password, nil
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return "", "", bad
	}
	query := u.Query()
	_, inUser := u.User.Password()
	if !inUser && !query.Has("password") {
		return dsn, "", nil
	}
	u.User = url.User(u.User.Username())
	query.Del("password")
	u.RawQuery = query.Encode()
	return u.String(), parsed.Password, nil
}
