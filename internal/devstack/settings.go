package devstack

import (
	"fmt"
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

	archiveFolder = "archive"
)

// Context is the name of the stack's context in its settings file.
const Context = "dev"

// writeSettings writes the stack's context into kappactl.yaml and keeps what people have added. The password of an
// existing DSN is written to a separate file.
func (s *Stack) writeSettings(dir string, c Config, password string) error {
	settings := config.Settings{
		Context: Context, Brokers: s.Brokers, DSN: config.DSN(s.DSN), Schema: c.Schema, HTTP: s.HTTP,
	}
	folder, err := filepath.Abs(filepath.Join(dir, archiveFolder))
	if err != nil {
		return fmt.Errorf("place the archive: %w", err)
	}
	settings.Archive.Location = job.FolderLocation(folder)
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

// splitPassword removes the password from a connection string in either form (URL, or key=value words).
func splitPassword(dsn string) (rest, password string, err error) {
	bad := &job.Refusal{
		Code: job.ExitUsage, Cause: "the connection string given with --dsn cannot be parsed",
		Next: `write it as "host=… dbname=… user=…" or postgres://…`,
	}
	parsed, err := pgx.ParseConfig(dsn)
	if err != nil {
		return "", "", bad // pgx's error may contain the string
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
