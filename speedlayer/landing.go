package speedlayer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/query"
)

// maxKey is how many bytes the values of a row's key columns may have: a row of a b-tree index holds about 2,700.
const maxKey = query.MaxKeyBytes

// longKeyGuard is how the error begins that Land itself raises for such a row.
const longKeyGuard = "key_too_long: "

// keyTooLong is a row whose key no index can hold.
type keyTooLong struct{}

func (e *keyTooLong) Error() string {
	return fmt.Sprintf("the group key holds more than %d bytes", maxKey)
}

// texts are the columns of a result batch of Land, all text.
func texts(l job.Layout, batch arrow.RecordBatch) ([]array.StringLike, error) {
	names, _ := l.StagedColumns()
	if int(batch.NumCols()) != len(names) {
		return nil, fmt.Errorf("the query gave %d columns, %d are stored", batch.NumCols(), len(names))
	}
	out := make([]array.StringLike, len(names))
	for i, c := range batch.Columns() {
		s, ok := c.(array.StringLike)
		if !ok {
			return nil, fmt.Errorf("column %s came as %s, not as text", names[i], c.DataType())
		}
		out[i] = s
	}
	return out, nil
}

// checkKey returns an error for a row whose key is too long for an index. The text of a bytea is \x and two digits a
// byte.
func checkKey(columns []array.StringLike, keys []job.KeyColumn, row int) error {
	n := 0
	for i, c := range columns[:len(keys)] {
		if size := c.ValueLen(row); keys[i].Type == "bytea" {
			n += max(size-len(`\x`), 0) / 2
		} else {
			n += size
		}
	}
	if n > maxKey {
		return &dataError{&keyTooLong{}}
	}
	return nil
}

// appendCopy adds the rows of batch to buf in COPY's text format, with segment in front of each.
func appendCopy(buf []byte, l job.Layout, segment int64, batch arrow.RecordBatch) ([]byte, error) {
	columns, err := texts(l, batch)
	if err != nil {
		return buf, err
	}
	for row := range int(batch.NumRows()) {
		if err := checkKey(columns, l.Keys, row); err != nil {
			return buf, err
		}
		buf = strconv.AppendInt(buf, segment, 10)
		for _, c := range columns {
			buf = append(buf, '\t')
			if c.IsNull(row) {
				buf = append(buf, '\\', 'N')
			} else {
				buf = appendEscaped(buf, c.Value(row))
			}
		}
		buf = append(buf, '\n')
	}
	return buf, nil
}

// appendEscaped adds a value in COPY's text format.
func appendEscaped(buf []byte, s string) []byte {
	for {
		i := strings.IndexAny(s, "\\\n\r\t")
		if i < 0 {
			return append(buf, s...)
		}
		buf = append(buf, s[:i]...)
		switch s[i] {
		case '\\':
			buf = append(buf, '\\', '\\')
		case '\n':
			buf = append(buf, '\\', 'n')
		case '\r':
			buf = append(buf, '\\', 'r')
		case '\t':
			buf = append(buf, '\\', 't')
		}
		s = s[i+1:]
	}
}

// table is rows of text by column, as parameters of the upsert. A nil value is NULL.
type table struct {
	columns [][]*string
	rows    int
	bytes   int64 // about what it holds in memory
	most    int64 // of bytes; 0: no limit
}

// cellBytes is about what a value holds beside its text.
const cellBytes = 24

// newTable is a table for the rows of one live batch. It takes as much as the records may, and as much again while it
// is sent.
func (e *Engine) newTable() *table { return &table{most: max(e.config.Memory/10, 16<<20)} }

// add copies the rows of batch.
func (t *table) add(l job.Layout, batch arrow.RecordBatch) error {
	columns, err := texts(l, batch)
	if err != nil {
		return err
	}
	if t.columns == nil {
		t.columns = make([][]*string, len(columns))
	}
	n := int(batch.NumRows())
	for row := range n {
		if err := checkKey(columns, l.Keys, row); err != nil {
			return err
		}
	}
	for _, c := range columns {
		t.bytes += int64(n * cellBytes)
		for row := range n {
			t.bytes += int64(c.ValueLen(row))
		}
	}
	if t.most > 0 && t.bytes > t.most {
		return &query.ResourceError{
			Err:    fmt.Errorf("the query gives more than %d bytes of rows at once", t.most),
			Costly: true,
		}
	}
	for i, c := range columns {
		values := make([]string, n)
		for row := range n {
			if c.IsNull(row) {
				t.columns[i] = append(t.columns[i], nil)
				continue
			}
			values[row] = strings.Clone(c.Value(row)) // the batch is valid only until we return
			t.columns[i] = append(t.columns[i], &values[row])
		}
	}
	t.rows += n
	return nil
}

// lost returns how many of the rows are missing in the version table after a merge that changed so many. Zero where
// that cannot be told: rows of the latest of a key may be older than what is stored, and intervals of other texts are
// equal.
func (t *table) lost(l job.Layout, stored int64) int {
	switch {
	case stored >= int64(t.rows):
		return 0
	case l.Shape == job.Rows:
		return t.rows - int(stored)
	case l.Shape != job.Rollup || len(l.States) == 0:
		return 0
	case slices.ContainsFunc(l.Keys, func(k job.KeyColumn) bool { return strings.HasPrefix(k.Type, "interval") }):
		return 0
	}
	keys := map[string]bool{}
	for row := range t.rows {
		var key strings.Builder
		for i := range l.Keys {
			if v := t.columns[i][row]; v != nil {
				fmt.Fprintf(&key, "%d:%s", len(*v), *v)
			}
			key.WriteByte(';')
		}
		keys[key.String()] = true
	}
	return max(len(keys)-int(stored), 0)
}
