package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
)

// Answer is Oracle with each column cast to text in PostgreSQL's input syntax and named c0, c1, … in the order of the
// select list. This is the order of the layout's view columns, which the computed ones follow.
func (c *Compiled) Answer() string { return answer(c.Oracle, c.answers) }

// AuditAnswer is Answer over Audit: for appended rows, the columns of the layout's key come first.
func (c *Compiled) AuditAnswer() string {
	columns := c.answers
	if c.Layout.Shape == job.Rows {
		columns = append([]column{
			{job.TopicColumn, "VARCHAR"},
			{job.PartitionColumn, "INTEGER"},
			{job.OffsetColumn, "BIGINT"},
			{job.NthColumn, "INTEGER"},
		}, columns...)
	}
	return answer(c.Audit, append(slices.Clone(c.hidden), columns...))
}

func answer(sql string, columns []column) string {
	items := make([]string, len(columns))
	for i, col := range columns {
		items[i] = fmt.Sprintf("%s AS c%d", postgresText("q."+ident(col.name), col.typ), i)
	}
	return "SELECT " + strings.Join(items, ", ") + " FROM (" + sql + ") AS q"
}

// ErrValue reports that a value does not have its column's type.
var ErrValue = errors.New("not a value of the column's type")

// Convert returns a plain value (text, json.Number, bool, list, mapping) as Answer would write it in column i. It
// returns ErrValue if the column cannot hold the value.
func (s *Session) Convert(ctx context.Context, c *Compiled, i int, value any) (string, error) {
	typ := c.answers[i].typ
	literal, err := literalOf(value, typ)
	if err != nil {
		return "", err
	}
	rows, err := s.texts(ctx, fmt.Sprintf("SELECT %s FROM (SELECT CAST(%s AS %s) AS v)", postgresText("v", typ), literal,
		typ))
	if err != nil || len(rows) != 1 {
		cause := ""
		if err != nil {
			cause, _, _ = strings.Cut(err.Error(), "\n")
		}
		return "", fmt.Errorf("%w %s: %s", ErrValue, typ, cause)
	}
	return rows[0][0], nil
}

// literalOf returns an SQL text of a plain value. Lists, mappings and values of nested types are passed as JSON.
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
	if isText && nested { // an array in the syntax of PostgreSQL or DuckDB
		return literal(text), nil
	}
	return "CAST(" + literal(string(b)) + " AS JSON)", nil
}
