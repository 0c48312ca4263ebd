package job

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/kappactl/kappactl/internal/job/strict"
)

const (
	timestampType   = "timestamp without time zone"
	timestamptzType = "timestamp with time zone"
)

// columnType is one PostgreSQL type that a source column can have.
type columnType struct {
	name    string // canonical, as format_type prints it
	aliases []string
	args    int // how many arguments it may take
}

// columnTypes is closed: a type is in it when a record's value can be converted to it in one way only.
func columnTypes() []columnType {
	return []columnType{
		{name: "boolean", aliases: []string{"bool"}},
		{name: "smallint", aliases: []string{"int2"}},
		{name: "integer", aliases: []string{"int", "int4"}},
		{name: "bigint", aliases: []string{"int8"}},
		{name: "real", aliases: []string{"float4"}},
		{name: "double precision", aliases: []string{"float8", "float", "double"}},
		{name: "numeric", aliases: []string{"decimal"}, args: 2},
		{name: "text"},
		{name: "character varying", aliases: []string{"varchar"}, args: 1},
		{name: "bytea"},
		{name: "date"},
		{name: "time without time zone", aliases: []string{"time"}},
		{name: timestampType, aliases: []string{"timestamp"}},
		{name: timestamptzType, aliases: []string{"timestamptz"}},
		{name: "uuid"},
		{name: "json"},
		{name: "jsonb"},
	}
}

var typePattern = regexp.MustCompile(`^([a-z][a-z0-9_ ]*?) ?(?:\( ?([0-9]{1,9}) ?(?:, ?([0-9]{1,9}) ?)?\))?$`)

// ParseType turns a PostgreSQL type name into its canonical form: int8 → bigint, decimal(10, 2) → numeric(10,2).
func ParseType(text string) (string, error) {
	plain := strings.ToLower(strings.Join(strings.Fields(text), " "))
	m := typePattern.FindStringSubmatch(plain)
	if m == nil {
		return "", unknownType(text)
	}
	for _, t := range columnTypes() {
		if t.name == m[1] || contains(t.aliases, m[1]) {
			return t.with(m[2], m[3])
		}
	}
	return "", unknownType(text)
}

// with checks the arguments of the type: precision and scale, or a length.
func (t columnType) with(first, second string) (string, error) {
	a, _ := strconv.Atoi(first)
	b, _ := strconv.Atoi(second)
	switch {
	case t.args < 2 && second != "", t.args == 0 && first != "":
		return "", strict.Want(fmt.Sprintf("%s takes no such argument", t.name), "remove the parentheses")
	case t.name == "numeric" && first == "":
		return "", strict.Want("numeric without precision and scale",
			"write both, such as numeric(18,2): values are not rounded behind your back")
	case t.name == "numeric" && (a < 1 || a > 38 || b > a):
		return "", strict.Want(fmt.Sprintf("numeric(%d,%d) is out of range", a, b),
			"write numeric(p,s) with p from 1 to 38 and s from 0 to p")
	case t.name == "numeric":
		return fmt.Sprintf("numeric(%d,%d)", a, b), nil
	case first != "" && (a < 1 || a > 10485760):
		return "", strict.Want(fmt.Sprintf("a length of %d is out of range", a), "write 1 to 10485760, or text")
	case first != "":
		return fmt.Sprintf("%s(%d)", t.name, a), nil
	}
	return t.name, nil
}

func unknownType(text string) error {
	var names []string
	for _, t := range columnTypes() {
		names = append(append(names, t.name), t.aliases...)
	}
	folded := strings.ToLower(text)
	var known []string
	for _, t := range columnTypes() {
		known = append(known, shortest(t))
	}
	cure := "known: " + strings.Join(known, ", ")
	switch near := strict.Nearest(folded, names); {
	case near != "":
		cure = "did you mean " + near + "? " + cure
	case strings.HasPrefix(folded, "char"):
		cure = "use text; " + cure
	case strings.Contains(folded, "[") || strings.HasPrefix(folded, "struct") || strings.HasPrefix(folded, "map"):
		cure = "declare lists and objects as jsonb; " + cure
	case folded == "string":
		cure = "use text; " + cure
	}
	return strict.Want(fmt.Sprintf("unknown type %q", text), cure)
}

// shortest is the name that people type.
func shortest(t columnType) string {
	switch t.name {
	case "numeric":
		return "numeric(p,s)"
	case "character varying":
		return "varchar(n)"
	case "time without time zone", timestampType, timestamptzType:
		return t.aliases[0]
	}
	return t.name
}
