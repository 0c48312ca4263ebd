package job

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kappactl/kappactl/internal/job/strict"
)

// MaxIdentifier is the longest name in bytes that PostgreSQL keeps whole.
const MaxIdentifier = 63

func contains(list []string, s string) bool { return slices.Contains(list, s) }

func foldName(s string) string { return strings.ToLower(s) }

func parseName(text string) (Name, error) {
	if !NamePattern.MatchString(text) {
		return "", strict.Want(fmt.Sprintf("the job name %q does not fit", text),
			"write a lower-case letter, then up to 39 of a-z, 0-9 and _")
	}
	return Name(text), nil
}

// identifier refuses what PostgreSQL would cut or cannot hold.
func identifier(kind, text string) error {
	switch {
	case text == "":
		return strict.Want("the "+kind+" is empty", "write one")
	case len(text) > MaxIdentifier:
		return strict.Want(fmt.Sprintf("the %s has %d bytes, more than %d", kind, len(text), MaxIdentifier),
			"shorten it; PostgreSQL would cut it")
	case strings.ContainsFunc(text, unicode.IsControl) || !utf8.ValidString(text):
		return strict.Want("the "+kind+" has control characters in it", "remove them")
	}
	return nil
}

func columnName(text string) (string, error) {
	if err := identifier("column name", text); err != nil {
		return "", err
	}
	if strings.HasPrefix(text, "_") {
		return "", strict.Want(fmt.Sprintf("the column name %q begins with _", text),
			"names with _ in front are kept for kappactl (_topic, _partition, _offset, _timestamp, _key, _headers)")
	}
	return text, nil
}

func roleName(text string) (string, error) { return text, identifier("role name", text) }

// labelName is a name that is only shown: of a check or a test.
func labelName(text string) (string, error) {
	if n := utf8.RuneCountInString(text); n > 200 || strings.TrimSpace(text) == "" ||
		strings.ContainsFunc(text, unicode.IsControl) {
		return "", strict.Want("the name does not fit", "write 1 to 200 characters on one line")
	}
	return text, nil
}

var topicPattern = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)

func topicName(text string) (string, error) {
	if !topicPattern.MatchString(text) || text == "." || text == ".." {
		return "", strict.Want(fmt.Sprintf("Kafka has no topic named %q", text),
			"write 1 to 249 of a-z, A-Z, 0-9, dot, _ and -")
	}
	return text, nil
}

var plainIdentifier = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// ParseViewName reads name or schema.name, the parts as in SQL: "Weird Name" in double quotes, a double quote in it
// doubled. The schema is public when there is none.
func ParseViewName(text string) (ViewName, error) {
	parts, err := splitIdentifiers(text)
	if err != nil {
		return ViewName{}, err
	}
	if len(parts) > 2 {
		return ViewName{}, strict.Want(fmt.Sprintf("the view name %s has %d parts", text, len(parts)),
			"write schema.name; the database is that of the connection")
	}
	v := ViewName{Schema: "public", Name: parts[len(parts)-1]}
	if len(parts) == 2 {
		v.Schema = parts[0]
	}
	if strings.HasPrefix(v.Schema, "pg_") || v.Schema == "information_schema" {
		return ViewName{}, strict.Want("the schema "+v.Schema+" belongs to PostgreSQL", "name a schema of your own")
	}
	return v, nil
}

// splitIdentifiers splits at the dots outside double quotes.
func splitIdentifiers(text string) ([]string, error) {
	var parts []string
	for rest := text; ; {
		var part string
		var err error
		if part, rest, err = oneIdentifier(text, rest); err != nil {
			return nil, err
		}
		parts = append(parts, part)
		switch {
		case rest == "":
			return parts, nil
		case rest[0] != '.':
			return nil, strict.Want(fmt.Sprintf("the view name %s cannot be read", text),
				`write schema.name; a name with other characters in double quotes: public."Weird Name"`)
		}
		rest = rest[1:]
	}
}

func oneIdentifier(text, rest string) (part, after string, err error) {
	if !strings.HasPrefix(rest, `"`) {
		part, after = rest, ""
		if dot := strings.IndexByte(rest, '.'); dot >= 0 {
			part, after = rest[:dot], rest[dot:]
		}
		if part != "" && !plainIdentifier.MatchString(part) {
			return "", "", strict.Want(fmt.Sprintf("the name %s needs double quotes", part),
				fmt.Sprintf(`write %s as "%s" within the value, or use a-z, 0-9 and _ only`, part, part))
		}
		return part, after, identifier("view name", part)
	}
	for i := 1; i < len(rest); i++ {
		switch {
		case rest[i] != '"':
		case i+1 < len(rest) && rest[i+1] == '"':
			i++
		default:
			part = strings.ReplaceAll(rest[1:i], `""`, `"`)
			return part, rest[i+1:], identifier("view name", part)
		}
	}
	return "", "", strict.Want(fmt.Sprintf("a double quote is not closed in %s", text), "close it")
}

// versionTable reports whether name is that of a version's table or of one derived from it.
func versionTable(job Name, name string) bool { return strings.HasPrefix(name, string(job)+"__") }

// cutPartition reads the topic of TOPIC/PARTITION.
func cutPartition(text string) (topic string, ok bool) {
	slash := strings.LastIndexByte(text, '/')
	if slash < 0 {
		return "", false
	}
	n, err := strconv.ParseInt(text[slash+1:], 10, 32)
	return text[:slash], err == nil && n >= 0 && strconv.FormatInt(n, 10) == text[slash+1:]
}
