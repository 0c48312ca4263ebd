package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Answer is Oracle with each column cast to text in PostgreSQL's input syntax, named c0, c1, … in the order of the select
// list, which is that of the layout's view columns before the computed ones.
func (c *Compiled) Answer() string {
	items := make([]string, len(c.answers))
	for i, col := range c.answers {
		items[i] = fmt.Sprintf("%s AS c%d", postgresText("q."+ident(col.name), col.typ), i)
	}
	return "SELECT " + strings.Join(items, ", ") + " FROM (" + c.Oracle + ") AS q"
}

// ErrValue is a value that is not of its column's type.
var ErrValue = errors.New("not a value of the column's type")

// Convert is a plain value (text, json.Number, bool, list, mapping) as Answer would write it in column i. A value that the
// column cannot hold is ErrValue.
func (s *Session) Convert(ctx context.Context, c *Compiled, i int, value any) (string, error) {
	typ := c.answers[i].typ
	literal, err := literalOf(value, typ)
	if err != nil {
		return "", err
	}
	rows, err := s.texts(ctx, fmt.Sprintf("SELECT %s FROM (SELECT CAST(%s AS %s) AS v)", postgresText("v", typ), literal, typ))
	if err != nil || len(rows) != 1 {
		cause := ""
		if err != nil {
			cause, _, _ = strings.Cut(err.Error(), "\n")
		}
		return "", fmt.Errorf("%w %s: %s", ErrValue, typ, cause)
	}
	return rows[0][0], nil
}

// literalOf is an SQL text of a plain value; lists and mappings, and values of nested types, travel as JSON.
func literalOf(value any, typ string) (string, error) {
	text, isText := value.(string)
	nested := strings.HasSuffix(typ, "]") || strings.HasPrefix(typ, "STRUCT") || strings.HasPrefix(typ, "MAP")
	switch {
	case isText && !nested && typ != "JSON":
		return literal(text), nil
	case nested || typ == "JSON":
	default:
		switch v := value.(type) {
		case json.Number:
			return literal(v.String()), nil
		case bool:
			return literal(fmt.Sprint(v)), nil
		}
	}
	b, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrValue, err)
	}
	if isText && nested { // an array as PostgreSQL or DuckDB writes it
		return literal(text), nil
	}
	return "CAST(" + literal(string(b)) + " AS JSON)", nil
}
