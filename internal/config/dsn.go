package config

import (
	"log/slog"
	"net/url"
	"regexp"
	"strings"

	"github.com/kappactl/kappactl/internal/job/strict"
)

// DSN is a PostgreSQL connection string, a URL or key=value pairs. It prints without its password; string(d) has it.
type DSN string

func (d DSN) String() string { return redact(string(d)) }

// GoString hides the password from %#v.
func (d DSN) GoString() string { return d.String() }

// MarshalText hides the password from encoders.
func (d DSN) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// LogValue hides the password from slog.
func (d DSN) LogValue() slog.Value { return slog.StringValue(d.String()) }

var (
	urlPassword  = regexp.MustCompile(`(://[^:/@\s?]*):[^/\s?]*@`)
	pairPassword = regexp.MustCompile(`(?i)(password\s*=\s*)(?:'(?:[^'\\]|\\.)*'?|(?:[^\s&\\]|\\.)+)`)
)

// redact puts *** in place of every password of a text that may hold connection strings.
func redact(text string) string {
	text = urlPassword.ReplaceAllString(text, "$1:"+hidden+"@")
	return pairPassword.ReplaceAllString(text, "${1}"+hidden)
}

// fileDSN takes a connection string as a settings file may hold it. Errors do not repeat it.
func fileDSN(text string) (DSN, error) {
	d, err := parseDSN(text)
	if err != nil {
		return "", err
	}
	if hasPassword(text) {
		return "", strict.Want("a password stands in the settings file",
			"remove it and use dsn_password_file, dsn_password_command, PGPASSFILE or PGPASSWORD")
	}
	return d, nil
}

// FlagDSN takes a connection string as a flag may give it: the environment may hold a password, a flag may not.
func FlagDSN(text string) error {
	if !hasPassword(text) {
		return nil
	}
	return usage("--dsn holds a password: every user of the machine can read a command line, and the shell keeps it",
		"leave the password out and set PGPASSWORD, PGPASSFILE or KAPPACTL_DSN_PASSWORD_FILE; or give the whole string in KAPPACTL_DSN")
}

func hasPassword(text string) bool { return redact(text) != text || urlHasPassword(text) }

// urlHasPassword sees what escapes in a URL hide from redact.
func urlHasPassword(text string) bool {
	u, err := url.Parse(text)
	if err != nil || !isURL(text) {
		return false
	}
	_, inUser := u.User.Password()
	return inUser || u.Query().Has("password") || u.Query().Has("sslpassword")
}

func isURL(text string) bool {
	return strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://")
}

// parseDSN checks the form of a connection string; what it says is PostgreSQL's matter.
func parseDSN(text string) (DSN, error) {
	wrong := strict.Want("the connection string cannot be read", `write "host=… dbname=… user=…" or postgres://USER@HOST:PORT/DATABASE`)
	if isURL(text) {
		if _, err := url.Parse(text); err != nil {
			return "", wrong
		}
		return DSN(text), nil
	}
	if !pairs.MatchString(text) {
		return "", wrong
	}
	return DSN(text), nil
}

var pairs = regexp.MustCompile(`^\s*(?:[a-z_]+\s*=\s*(?:'(?:[^'\\]|\\.)*'|(?:[^\s'\\]|\\.)*)\s*)+$`)
