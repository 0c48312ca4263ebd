package job

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/theory/jsonpath"
	"github.com/theory/jsonpath/spec"

	"github.com/kappactl/kappactl/internal/job/strict"
)

// The largest number of steps in a column's path, and the largest index in it.
const (
	maxSteps = 32
	maxIndex = 9_999
)

// Step is one step from a JSON value into it: to the member Name of an object, or to the element Index of an array.
type Step struct {
	Name  string
	Index int // from 0; -1: the step is to Name
}

// Steps returns the place of the column's value in the record's value. Without a path it is the member with the
// column's name.
func (c Column) Steps() ([]Step, error) {
	if c.Path == "" {
		return []Step{{Name: c.Name, Index: -1}}, nil
	}
	return parsePath(c.Path)
}

// PathText returns the canonical spelling of a path, as in Column.Path: $.payload.items[0]['unit price'].
func PathText(steps []Step) string {
	var b strings.Builder
	b.WriteByte('$')
	for _, s := range steps {
		switch {
		case s.Index >= 0:
			fmt.Fprintf(&b, "[%d]", s.Index)
		case shorthand.MatchString(s.Name):
			b.WriteString("." + s.Name)
		default:
			b.WriteString("[" + quotedName(s.Name) + "]")
		}
	}
	return b.String()
}

// shorthand matches names that RFC 9535 takes after a dot.
var shorthand = regexp.MustCompile(`^[A-Za-z_\x{80}-\x{D7FF}][A-Za-z0-9_\x{80}-\x{D7FF}]*$`)

// quotedName is a name in single quotes, escaped as RFC 9535 has it.
func quotedName(name string) string {
	var b strings.Builder
	b.WriteByte('\'')
	for _, r := range name {
		switch {
		case r == '\'' || r == '\\':
			b.WriteString(`\` + string(r))
		case r < ' ':
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('\'')
	return b.String()
}

// pathText reads a path and gives its one spelling.
func pathText(text string) (string, error) {
	steps, err := parsePath(text)
	if err != nil {
		return "", err
	}
	return PathText(steps), nil
}

// parsePath reads a JSONPath (RFC 9535) that leads to one place: its steps are names and indexes.
func parsePath(text string) ([]Step, error) {
	const cure = "write names and indexes: $.payload.amount, $.items[0].price, $['unit price'].value"
	query, err := jsonpath.Parse(text)
	if err != nil {
		cause, _ := strings.CutPrefix(err.Error(), "jsonpath: ")
		return nil, strict.Want(fmt.Sprintf("%q is not a JSONPath: %s", text, cause),
			cure+"; names with other characters than letters, digits and _ in brackets and quotes")
	}
	segments := query.Query().Segments()
	switch {
	case query.Query().Singular() == nil:
		return nil, strict.Want(fmt.Sprintf("the path %q may lead to several values", text),
			cure+"; to take a list apart, declare it as jsonb and unnest it in the query")
	case len(segments) == 0:
		return nil, strict.Want("the path $ is the whole value", cure+"; format raw gives the whole value to one column")
	case len(segments) > maxSteps:
		return nil, strict.Want(fmt.Sprintf("the path has %d steps, more than %d", len(segments), maxSteps),
			"declare a value above it as jsonb and extract its parts in the query")
	}
	steps := make([]Step, len(segments))
	for i, segment := range segments {
		switch at := segment.Selectors()[0].(type) {
		case spec.Name:
			steps[i] = Step{Name: string(at), Index: -1}
		case spec.Index:
			if steps[i].Index = int(at); at < 0 || at > maxIndex {
				return nil, strict.Want(fmt.Sprintf("the index %d in the path is out of range", at),
					fmt.Sprintf("write an index from 0 to %d, or declare the array as jsonb and extract its parts in the query",
						maxIndex))
			}
		}
	}
	return steps, nil
}
