package query

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
)

// jsonDigits warns of decimals that the query extracts from a JSON value, because DuckDB reads them as doubles.
func (c *compiler) jsonDigits() {
	names := map[string]tree{} // extracted values of inner SELECTs, by alias
	each(c.statement, func(n tree) bool {
		if alias := n.alias(); alias != "" && c.extracts(n) {
			names[strings.ToLower(alias)] = n
		}
		return true
	})
	each(c.statement, func(n tree) bool {
		if transformsToDecimal(n) {
			c.refused.warn(placeOf(n), keepsSeventeen, cureOfUnknownPlace)
		}
		if n.class() != classCast || n.child("cast_type").text("id") != "DECIMAL" {
			return true
		}
		from := n.child("child")
		if from.class() == classColumn && !c.extracts(from) {
			columns := from.texts("column_names")
			from = names[strings.ToLower(columns[len(columns)-1])]
		}
		if c.extracts(from) {
			c.refused.warn(placeOf(n), keepsSeventeen, c.exactly(from, n.child("cast_type")))
		}
		return true
	})
}

const (
	keepsSeventeen     = "a number extracted from JSON keeps 17 digits: DuckDB reads it as a double"
	cureOfUnknownPlace = "declare a column for it with path when it has one place in the record, " +
		"or let the producer write it as a string"
)

var decimalType = regexp.MustCompile(`(?i)\b(DECIMAL|NUMERIC|DEC)\b`)

// transformsToDecimal reports whether e makes a structure with decimals out of JSON. Its second argument has the types.
func transformsToDecimal(e tree) bool {
	if e.class() != classFunction || len(e.list("children")) != 2 {
		return false
	}
	switch e.function() {
	case "from_json", "from_json_strict", "json_transform", "json_transform_strict":
		types, _ := e.list("children")[1].child("value")["value"].(string)
		return decimalType.MatchString(types)
	}
	return false
}

// extracts reports whether e extracts a value from JSON. The parser represents the arrow -> as a lambda, and p.a as a
// column a of p.
func (c *compiler) extracts(e tree) bool {
	children := e.list("children")
	switch e.class() {
	case classLambda:
		return e.child("expr").class() == classConstant
	case classColumn:
		_, inside := c.dotted(e.texts("column_names"))
		return len(inside) > 0
	case classOperator:
		return (e.kind() == "ARRAY_EXTRACT" || e.kind() == "STRUCT_EXTRACT") && len(children) == 2 &&
			(c.extracts(children[0]) || c.isJSON(children[0]))
	case classFunction:
		switch e.function() {
		case "->>", "json_extract", "json_extract_string", "json_extract_path", "json_extract_path_text", "json_value":
			return len(children) > 1
		}
	}
	return false
}

// isJSON reports whether e is a column of JSON.
func (c *compiler) isJSON(e tree) bool {
	columns := e.texts("column_names")
	return e.class() == classColumn && len(columns) > 0 && c.holdsJSON(columns[len(columns)-1])
}

// holdsJSON reports whether a declared column holds JSON.
func (c *compiler) holdsJSON(name string) bool {
	return slices.ContainsFunc(c.spec.Source.Columns, func(d job.Column) bool {
		return strings.EqualFold(d.Name, name) && (d.Type == "json" || d.Type == "jsonb")
	})
}

// exactly returns how to read the value that e extracts with all its digits.
func (c *compiler) exactly(e, typ tree) string {
	steps, known := c.stepsTo(e)
	if !known {
		return cureOfUnknownPlace
	}
	name := "value"
	if last := steps[len(steps)-1]; last.Index < 0 {
		name = last.Name
	}
	numeric := "numeric(p,s)"
	info := typ.child("type_info")
	width, _ := info["width"].(json.Number)
	scale, _ := info["scale"].(json.Number)
	if width != "" && scale != "" {
		numeric = fmt.Sprintf("numeric(%s,%s)", width, scale)
	}
	return fmt.Sprintf("declare a column for it, which keeps every digit: %s: {type: %q, path: %q}",
		name, numeric, job.PathText(steps))
}

// stepsTo returns the place in the record of the value that e extracts; false if unknown.
func (c *compiler) stepsTo(e tree) ([]job.Step, bool) {
	children := e.list("children")
	switch e.class() {
	case classLambda:
		children = []tree{e.child("lhs"), e.child("expr")}
	case classColumn:
		return c.stepsOfDots(e.texts("column_names"))
	}
	steps, known := c.stepsToBase(children[0])
	if !known || len(children) != 2 {
		return nil, false
	}
	if i, ok := children[1].integer(); ok {
		return append(steps, job.Step{Index: i}), i >= 0
	}
	text, ok := children[1].child("value")["value"].(string)
	switch {
	case !ok || strings.HasPrefix(text, "/"):
		return nil, false
	case strings.HasPrefix(text, "$"):
		inside, err := job.Column{Path: text}.Steps()
		return append(steps, inside...), err == nil
	}
	return append(steps, job.Step{Name: text, Index: -1}), true
}

// dotted splits p.a.b into the column of JSON and the names inside it; inside is empty when there are none.
func (c *compiler) dotted(names []string) (column string, inside []string) {
	i := slices.IndexFunc(names, c.holdsJSON)
	if i < 0 {
		return "", nil
	}
	return names[i], names[i+1:]
}

// stepsOfDots returns the place of p.a.b.
func (c *compiler) stepsOfDots(names []string) ([]job.Step, bool) {
	column, inside := c.dotted(names)
	steps, known := c.stepsToBase(tree{"class": classColumn, "column_names": []any{column}})
	for _, name := range inside {
		steps = append(steps, job.Step{Name: name, Index: -1})
	}
	return steps, known
}

// stepsToBase returns the place of the JSON value from which something is extracted.
func (c *compiler) stepsToBase(e tree) ([]job.Step, bool) {
	if c.extracts(e) {
		return c.stepsTo(e)
	}
	columns := e.texts("column_names")
	if e.class() != classColumn || len(columns) == 0 || c.spec.Source.Format != "json" {
		return nil, false
	}
	for _, declared := range c.spec.Source.Columns {
		if strings.EqualFold(declared.Name, columns[len(columns)-1]) {
			steps, err := declared.Steps()
			return steps, err == nil && (declared.Type == "json" || declared.Type == "jsonb")
		}
	}
	return nil, false
}
