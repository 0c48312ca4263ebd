package query

import (
	"fmt"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
)

// MaxKeyBytes is the largest total size of a row's key columns as text, in bytes. A row of a PostgreSQL b-tree index
// holds about 2,700.
const MaxKeyBytes = maxKeyBytes

// Casts returns a PostgreSQL statement that takes rows of Land, one text[] parameter per column, and raises the same
// error as storing them would, if a text is not a value of its column's type. It reads no table.
func Casts(l job.Layout) string {
	_, types := l.StagedColumns()
	params, names, values := make([]string, len(types)), make([]string, len(types)), make([]string, len(types))
	for i, typ := range types {
		params[i] = fmt.Sprintf("$%d::text[]", i+1)
		names[i] = fmt.Sprintf("c%d", i)
		values[i] = fmt.Sprintf("max(octet_length((a.c%d::%s)::text))", i, typ)
	}
	return fmt.Sprintf("SELECT %s FROM unnest(%s) AS a (%s)", strings.Join(values, ", "), strings.Join(params, ", "),
		strings.Join(names, ", "))
}
