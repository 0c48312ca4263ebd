package devstack

import (
	"net/url"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/config"
	"github.com/kappactl/kappactl/internal/job"
)

const (
	configFile   = "kappactl.yaml"
	passwordFile = "dsn-password"
)

// writeSettings writes kappactl.yaml. A password of a given DSN is kept in a file of its own.
func (s *Stack) writeSettings(dir string, c Config, password string) error {
	settings := config.Settings{Context: "dev", Brokers: s.Brokers, DSN: config.DSN(s.DSN), Schema: c.Schema, HTTP: s.HTTP}
	if password != "" {
		settings.Password.File = filepath.Join(dir, passwordFile)
		if err := writeFile(settings.Password.File, []byte(password+"\n"), 0o600); err != nil {
			return err
		}
	}
	s.ConfigPath = filepath.Join(dir, configFile)
	return config.Write(s.ConfigPath, settings)
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
