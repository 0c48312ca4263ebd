package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
)

// Answer is Oracle with each column cast to text in PostgreSQL's input syntax, named c0, c1, … in the order of the select
// list, which is that of the layout's view columns before the computed ones.
func (c *Compiled) Answer() string { return answer(c.Oracle, c.answers) }

// AuditAnswer is Answer over Audit: of rows that are appended, with the columns of the layout's key in front.
func (c *Compiled) AuditAnswer() string {
	columns := c.answers
	if c.Layout.Shape == job.Rows {
		columns = append([]column{{job.TopicColumn, "VARCHAR"}, {job.PartitionColumn, "INTEGER"}, {job.OffsetColumn, "BIGINT"}, {job.NthColumn, "INTEGER"}}, columns...)
	}
	return answer(c.Audit, columns)
}

func answer(sql string, columns []column) string {
	items := make([]string, len(columns))
	for i, col := range columns {
		items[i] = fmt.Sprintf("%s AS c%d", postgresText("q."+ident(col.name), col.typ), i)
	}
	return "SELECT " + strings.Join(items, ", ") + " FROM (" + sql + ") AS q"
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
