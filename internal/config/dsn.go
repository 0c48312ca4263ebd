package config

import (
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
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
	// A password that is not escaped may hold anything, so the password of a URL ends at the last @ before white space.
	urlPassword  = regexp.MustCompile(`(://[^:/@\s?#]*):\S*@`)
	pairPassword = regexp.MustCompile(`(?i)(pass(?:word|%77ord)\s*=\s*)(?:'(?:[^'\\]|\\.)*'?|(?:[^\s&\\]|\\.)+)`)
)

// redact puts *** in place of every password of a text that may hold connection strings.
func redact(text string) string {
	if isURL(text) {
		return redactURL(text)
	}
	text = urlPassword.ReplaceAllString(text, "$1:"+hidden+"@")
	return pairPassword.ReplaceAllString(text, "${1}"+hidden)
}

// redactURL hides the password of one URL, whatever characters it holds and however its parameters are spelled.
func redactURL(text string) string {
	scheme, rest, _ := strings.Cut(text, "://")
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		if user, _, found := strings.Cut(rest[:at], ":"); found {
			rest = user + ":" + hidden + rest[at:]
		}
	}
	head, query, found := strings.Cut(rest, "?")
	if !found {
		return scheme + "://" + rest
	}
	params := strings.Split(query, "&")
	for i, p := range params {
		name, _, _ := strings.Cut(p, "=")
		if plain, err := url.QueryUnescape(name); err != nil || strings.Contains(strings.ToLower(plain), "password") {
			params[i] = name + "=" + hidden
		}
	}
	return scheme + "://" + head + "?" + strings.Join(params, "&")
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

// parseDSN checks the form of a connection string; PostgreSQL judges its content.
func parseDSN(text string) (DSN, error) {
	wrong := strict.Want("the connection string cannot be read",
		`write "host=… dbname=… user=…" or postgres://USER@HOST:PORT/DATABASE`)
	if isURL(text) {
		if special := unescaped(text); special != "" {
			return "", strict.Want("the user or the password of the connection URL holds characters that need escapes",
				"write "+special+" between postgres:// and the host")
		}
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

// unescaped lists how the special characters of a URL's user and password are written, as in "%40 for @ and %2F for /";
// empty when none needs it. It names characters only, never the text.
func unescaped(text string) string {
	_, rest, _ := strings.Cut(text, "://")
	authority := rest
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority = rest[:end]
	}
	_, err := url.Parse(text)
	at := strings.LastIndexByte(rest, '@')
	path, _, _ := strings.Cut(rest, "?")
	plain := err == nil && strings.Count(authority, "@") < 2 // Go takes the last @ for the end of the password, PostgreSQL the first
	if plain && strings.LastIndexByte(path, '@') < len(authority) && !strings.Contains(rest[:max(at, 0)], "#") {
		return "" // no @ behind the host, but perhaps in a parameter
	}
	if at < 0 {
		return ""
	}
	found := []string{}
	userinfo := rest[:at]
	for i, r := range userinfo {
		special := strings.ContainsRune("/?#[]@ \"<>\\^`{|}", r) || r < ' '
		if r == '%' {
			_, err := url.PathUnescape(userinfo[i:min(i+3, len(userinfo))])
			special = err != nil
		}
		if entry := fmt.Sprintf("%%%02X for %q", r, string(r)); special && !slices.Contains(found, entry) {
			found = append(found, entry)
		}
	}
	return strings.Join(found, ", ")
}

var pairs = regexp.MustCompile(`^\s*(?:[a-z_]+\s*=\s*(?:'(?:[^'\\]|\\.)*'|(?:[^\s'\\]|\\.)*)\s*)+$`)

// dsnFiles are the parameters of a connection string that name files.
func dsnFiles() []string {
	return []string{"sslcert", "sslkey", "sslrootcert", "passfile", "servicefile"}
}

var dsnFile = regexp.MustCompile(`(^|\s)(` + strings.Join(dsnFiles(), "|") +
	`)(\s*=\s*)('(?:[^'\\]|\\.)*'|(?:[^\s'\\]|\\.)+)`)

// relativeTo makes the files that the connection string names relative to dir.
func (d DSN) relativeTo(dir string) DSN {
	absolute := func(path string) string {
		if path == "" || filepath.IsAbs(path) || path == "system" { // sslrootcert=system: the roots of the system
			return path
		}
		return filepath.Join(dir, path)
	}
	if !isURL(string(d)) {
		return DSN(dsnFile.ReplaceAllStringFunc(string(d), func(pair string) string {
			m := dsnFile.FindStringSubmatch(pair)
			plain := regexp.MustCompile(`\\(.)`).ReplaceAllString(strings.Trim(m[4], "'"), "$1")
			if absolute(plain) == plain {
				return pair
			}
			return m[1] + m[2] + m[3] + "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(absolute(plain)) + "'"
		}))
	}
	u, err := url.Parse(string(d))
	if err != nil {
		return d
	}
	query, changed := u.Query(), false
	for _, name := range dsnFiles() {
		if old := query.Get(name); absolute(old) != old {
			query.Set(name, absolute(old))
			changed = true
		}
	}
	if !changed {
		return d
	}
	u.RawQuery = query.Encode()
	return DSN(u.String())
}
