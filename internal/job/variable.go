package job

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kappactl/kappactl/internal/job/strict"
)

// Variables supplies the values of ${NAME} in a job file.
type Variables struct {
	// Lookup returns the value of a variable and whether it is defined. nil defines none.
	Lookup func(name string) (value string, found bool)
	// Secret reports whether a variable holds a secret, by its name or its value. nil: none does.
	Secret func(name, value string) bool
}

// variablePattern matches $${, which is a literal ${, and ${NAME} or ${NAME:-default}; its last choice is a ${ that is
// neither.
var variablePattern = regexp.MustCompile(`\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}|\$\{`)

// VariableName matches the name of a variable.
var VariableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expanded is a text whose variables were replaced.
type expanded struct {
	text   string
	raw    string // as in the file
	pieces []piece
	names  []string // of the variables in it
}

// piece is a part of the raw text that was replaced, with its byte offsets in both texts.
type piece struct{ rawFrom, rawTo, from, to int }

// rawOffset is where the byte at offset of the expanded text comes from. A byte of a value comes from its ${.
func (e expanded) rawOffset(offset int) int {
	shift := 0
	for _, p := range e.pieces {
		if offset < p.from {
			break
		}
		if offset < p.to {
			return p.rawFrom
		}
		shift = p.rawTo - p.to
	}
	return offset + shift
}

// expandError is a variable that cannot be replaced, with its byte offset in the raw text.
type expandError struct {
	offset int
	error
}

// expand replaces the variables of raw. The expanded text is whole when there are no errors.
func (v Variables) expand(raw string) (e expanded, errs []expandError) {
	e.raw = raw
	var b strings.Builder
	last := 0
	for _, m := range variablePattern.FindAllStringSubmatchIndex(raw, -1) {
		b.WriteString(raw[last:m[0]])
		last = m[1]
		text, err := "${", error(nil)
		if raw[m[0]:m[1]] != "$${" {
			text, err = v.value(raw, m)
		}
		if err != nil {
			errs = append(errs, expandError{m[0], err})
		}
		if m[2] >= 0 {
			e.names = append(e.names, raw[m[2]:m[3]])
		}
		e.pieces = append(e.pieces, piece{m[0], m[1], b.Len(), b.Len() + len(text)})
		b.WriteString(text)
	}
	b.WriteString(raw[last:])
	e.text = b.String()
	return e, errs
}

// value returns the replacement of match m of variablePattern in raw.
func (v Variables) value(raw string, m []int) (string, error) {
	if m[2] < 0 {
		return "", strict.Want("${ without a name and a closing brace",
			"write ${NAME} or ${NAME:-default}; $${ is a literal ${")
	}
	name := raw[m[2]:m[3]]
	value, found := "", false
	if v.Lookup != nil {
		value, found = v.Lookup(name)
	}
	if v.Secret != nil && v.Secret(name, value) {
		return "", strict.Want(fmt.Sprintf("${%s} is a secret, and a job file's text is stored and shown", name),
			"keep secrets in the settings; a job file needs none")
	}
	withDefault := m[4] >= 0
	switch {
	case withDefault && value == "":
		value = raw[m[6]:m[7]]
	case !found:
		return "", strict.Want(fmt.Sprintf("the variable %s is not defined", name),
			fmt.Sprintf("give it by --set %s=VALUE, in a file by --vars FILE or as an environment variable; "+
				"or write a default: ${%s:-VALUE}", name, name))
	}
	if !utf8.ValidString(value) || strings.ContainsFunc(value, isControl) {
		return "", strict.Want(fmt.Sprintf("the value of %s has control characters or is not UTF-8", name),
			"give it as plain text")
	}
	return value, nil
}

// isControl reports whether r is a control character that no text of a job file may hold.
func isControl(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
