package query

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// tree is one node of DuckDB's parse tree as json_serialize_sql returns it. Expressions have class, type, alias and
// query_location; query nodes and table references have type.
type tree map[string]any

// The classes and types of nodes that this package handles.
const (
	classColumn    = "COLUMN_REF"
	classConstant  = "CONSTANT"
	classFunction  = "FUNCTION"
	classCast      = "CAST"
	classOperator  = "OPERATOR"
	classCompare   = "COMPARISON"
	classAnd       = "CONJUNCTION"
	classCase      = "CASE"
	classBetween   = "BETWEEN"
	classLambda    = "LAMBDA"
	classCollate   = "COLLATE"
	classStar      = "STAR"
	classWindow    = "WINDOW"
	classSubquery  = "SUBQUERY"
	classParameter = "PARAMETER"
	classPosition  = "POSITIONAL_REFERENCE"
	classDefault   = "DEFAULT"

	nodeSelect = "SELECT_NODE"
	nodeSetOp  = "SET_OPERATION_NODE"

	fromTable    = "BASE_TABLE"
	fromSubquery = "SUBQUERY"
	fromNothing  = "EMPTY"
)

func (t tree) text(key string) string {
	s, _ := t[key].(string)
	return s
}

func (t tree) flag(key string) bool {
	b, _ := t[key].(bool)
	return b
}

// child returns the node at key; nil if it is null or absent.
func (t tree) child(key string) tree { return asTree(t[key]) }

// list returns the nodes of the array at key.
func (t tree) list(key string) []tree {
	items, _ := t[key].([]any)
	out := make([]tree, 0, len(items))
	for _, item := range items {
		out = append(out, asTree(item))
	}
	return out
}

// texts returns the strings of the array at key.
func (t tree) texts(key string) []string {
	items, _ := t[key].([]any)
	out := make([]string, 0, len(items))
	for _, item := range items {
		s, _ := item.(string)
		out = append(out, s)
	}
	return out
}

func asTree(v any) tree {
	switch v := v.(type) {
	case tree:
		return v
	case map[string]any:
		return v
	default:
		return nil
	}
}

func (t tree) class() string { return t.text("class") }
func (t tree) kind() string  { return t.text("type") }
func (t tree) alias() string { return t.text("alias") }

// at returns the byte offset of the node in the query, or -1 if DuckDB does not know it.
func (t tree) at() int {
	n, ok := t["query_location"].(json.Number)
	if !ok {
		return -1
	}
	at, err := strconv.Atoi(n.String())
	if err != nil {
		return -1 // DuckDB writes 2^64-1
	}
	return at
}

// function returns the lower-case name of a FUNCTION node.
func (t tree) function() string { return strings.ToLower(t.text("function_name")) }

// integer returns the value of an integer constant.
func (t tree) integer() (int, bool) {
	if t.class() != classConstant {
		return 0, false
	}
	value := t.child("value")
	n, ok := value["value"].(json.Number)
	if kind := value.child("type").text("id"); !ok || (kind != "INTEGER" && kind != "BIGINT") {
		return 0, false
	}
	i, err := strconv.Atoi(n.String())
	return i, err == nil
}

// clone copies the node deeply.
func (t tree) clone() tree { return asTree(cloneValue(map[string]any(t))) }

func cloneValue(v any) any {
	switch v := v.(type) {
	case tree:
		return cloneValue(map[string]any(v))
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = cloneValue(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = cloneValue(x)
		}
		return out
	default:
		return v
	}
}

// each calls f for every node below v that has a type, parents first. f returns whether to descend.
func each(v any, f func(tree) bool) {
	switch v := v.(type) {
	case tree:
		each(map[string]any(v), f)
	case map[string]any:
		if _, ok := v["type"].(string); ok && !f(v) {
			return
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			each(v[k], f)
		}
	case []any:
		for _, x := range v {
			each(x, f)
		}
	}
}

// signature returns a text that two expressions share only if they have the same value. It omits places and the
// expression's own alias, compares names without case, and treats a column qualified by the relation's own name like
// the bare column. It keeps aliases below the root, which name the fields of a STRUCT and the arguments of a call.
// Inside a lambda every name is kept as written: its parameters hide columns and the relation, and are case-sensitive.
func (t tree) signature(relation string) string {
	c := t.clone()
	delete(c, "alias")
	lambdas := false
	each(c, func(n tree) bool {
		lambdas = lambdas || n.class() == classLambda
		return !lambdas
	})
	each(c, func(n tree) bool {
		delete(n, "query_location")
		if n.class() == classColumn && !lambdas {
			names := n.texts("column_names")
			if len(names) > 1 && strings.EqualFold(names[0], relation) {
				names = names[1:]
			}
			n["column_names"] = strings.ToLower(strings.Join(names, "\x00"))
		}
		if n.class() == classFunction {
			n["function_name"] = n.function()
		}
		return true
	})
	b, err := json.Marshal(map[string]any(c))
	if err != nil {
		return fmt.Sprint(c)
	}
	return string(b)
}

// engineError is an error that DuckDB reports about a text it was asked to serialize.
type engineError struct {
	kind    string // parser, binder, not implemented, …
	subtype string // COLUMN_NOT_FOUND, NO_MATCHING_FUNCTION, …
	message string
	name    string // of the column or function concerned
	at      int    // byte offset in the text; -1 if unknown
}

func (e *engineError) Error() string { return e.message }

// serialized returns the result of json_serialize_sql or json_serialize_plan.
func (s *Session) serialized(ctx context.Context, function, text string) (tree, error) {
	rows, err := s.texts(ctx, "SELECT CAST("+function+"(?::VARCHAR) AS VARCHAR)", text)
	if err != nil {
		return nil, err
	}
	if len(rows) != 1 || len(rows[0]) != 1 {
		return nil, fmt.Errorf("%s gave %d rows", function, len(rows))
	}
	d := json.NewDecoder(bytes.NewBufferString(rows[0][0]))
	d.UseNumber()
	var out map[string]any
	if err := d.Decode(&out); err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", function, err)
	}
	t := tree(out)
	if !t.flag("error") {
		return t, nil
	}
	e := &engineError{
		kind: t.text("error_type"), subtype: t.text("error_subtype"),
		message: t.text("error_message"), name: t.text("name"), at: -1,
	}
	if at, err := strconv.Atoi(t.text("position")); err == nil {
		e.at = at
	}
	return nil, e
}

// parse returns the statements of text.
func (s *Session) parse(ctx context.Context, text string) ([]tree, error) {
	t, err := s.serialized(ctx, "json_serialize_sql", text)
	if err != nil {
		return nil, err
	}
	return t.list("statements"), nil
}

// plan binds text and returns its plans before optimization.
func (s *Session) plan(ctx context.Context, text string) ([]tree, error) {
	t, err := s.serialized(ctx, "json_serialize_plan", text)
	if err != nil {
		return nil, err
	}
	return t.list("plans"), nil
}

// write turns a statement's tree back into text.
func (s *Session) write(ctx context.Context, statement tree) (string, error) {
	b, err := json.Marshal(map[string]any{"error": false, "statements": []any{map[string]any(statement)}})
	if err != nil {
		return "", fmt.Errorf("write the query: %w", err)
	}
	rows, err := s.texts(ctx, "SELECT json_deserialize_sql(?::JSON)", string(b))
	if err != nil {
		return "", fmt.Errorf("write the query: %w", err)
	}
	if len(rows) != 1 {
		return "", errors.New("write the query: no text")
	}
	return rows[0][0], nil
}

// column is one column of a statement's result.
type column struct{ name, typ string }

// columns returns names and DuckDB types of a statement's result.
func (s *Session) columns(ctx context.Context, text string) ([]column, error) {
	rows, err := s.texts(ctx, "SELECT column_name, column_type FROM (DESCRIBE "+text+")")
	if err != nil {
		return nil, err
	}
	out := make([]column, len(rows))
	for i, r := range rows {
		out[i] = column{name: r[0], typ: r[1]}
	}
	return out, nil
}

// number returns a whole number as in a parse tree.
func number(n int) json.Number { return json.Number(strconv.Itoa(n)) }
