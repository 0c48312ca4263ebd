package query

import (
	"fmt"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
)

// MaxKeyBytes is how many bytes the texts of a row's key columns may have together: a row of a b-tree index of PostgreSQL
// holds about 2,700.
const MaxKeyBytes = maxKeyBytes

// Casts is a PostgreSQL statement that takes rows of Land, one text[] parameter a column, and raises the error that storing
// one of them would raise: a text that is no value of its column's type. It reads no table.
func Casts(l job.Layout) string {
	_, types := l.StagedColumns()
	params, names, values := make([]string, len(types)), make([]string, len(types)), make([]string, len(types))
	for i, typ := range types {
		params[i] = fmt.Sprintf("$%d::text[]", i+1)
		names[i] = fmt.Sprintf("c%d", i)
		values[i] = fmt.Sprintf("max(octet_length((a.c%d::%s)::text))", i, typ)
	}
	return fmt.Sprintf("SELECT %s FROM unnest(%s) AS a (%s)", strings.Join(values, ", "), strings.Join(params, ", "), strings.Join(names, ", "))
}
