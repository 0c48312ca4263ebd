package query

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
)

// jsonDigits warns of decimals that the query extracts from a JSON value, because DuckDB reads them as doubles.
func (c *compiler) jsonDigits() {
	names := map[string]tree{} // extracted values of inner SELECTs, by alias
	each(c.statement, func(n tree) bool {
		if alias := n.alias(); alias != "" && extracts(n) {
			names[strings.ToLower(alias)] = n
		}
		return true
	})
	each(c.statement, func(n tree) bool {
		if n.class() != classCast || n.child("cast_type").text("id") != "DECIMAL" {
			return true
		}
		from := n.child("child")
		if from.class() == classColumn {
			columns := from.texts("column_names")
			from = names[strings.ToLower(columns[len(columns)-1])]
		}
		if extracts(from) {
			c.refused.warn(placeOf(n), "a number extracted from JSON keeps 17 digits: DuckDB reads it as a double",
				c.exactly(from, n.child("cast_type")))
		}
		return true
	})
}

// extracts reports whether e extracts a value from JSON. The parser represents the arrow -> as a lambda.
func extracts(e tree) bool {
	if e.class() == classLambda {
		return e.child("expr").class() == classConstant
	}
	if e.class() != classFunction || len(e.list("children")) < 2 {
		return false
	}
	switch e.function() {
	case "->>", "json_extract", "json_extract_string", "json_extract_path", "json_extract_path_text", "json_value":
		return true
	}
	return false
}

// exactly returns how to read the value that e extracts with all its digits.
func (c *compiler) exactly(e, typ tree) string {
	steps, known := c.stepsTo(e)
	if !known {
		return "declare a column for it with path when it has one place in the record, " +
			"or let the producer write it as a string"
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
	if e.class() == classLambda {
		children = []tree{e.child("lhs"), e.child("expr")}
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

// stepsToBase returns the place of the JSON value from which something is extracted.
func (c *compiler) stepsToBase(e tree) ([]job.Step, bool) {
	if extracts(e) {
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
