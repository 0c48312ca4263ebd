package verify

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/google/go-cmp/cmp"
)

func readAll(c *copied) (rows [][]string) {
	for c.Next() {
		row := c.RecordBatch().Column(0).(*array.Struct)
		for i := range row.Len() {
			var values []string
			for f := range row.NumField() {
				col := row.Field(f).(*array.String)
				if col.IsNull(i) {
					values = append(values, "<null>")
				} else {
					values = append(values, strings.Clone(col.Value(i)))
				}
			}
			rows = append(rows, values)
		}
	}
	return rows
}

func TestCopyTextIsTakenApart(t *testing.T) {
	c := newCopied(strings.NewReader("a\\tb\t\\N\n\\\\N\t\n\\b\\f\\n\\r\\v\té\n"), 2)
	defer c.close()
	want := [][]string{{"a\tb", "<null>"}, {`\N`, ""}, {"\b\f\n\r\v", "é"}}
	if diff := cmp.Diff(want, readAll(c)); diff != "" || c.Err() != nil {
		t.Error(diff, c.Err())
	}
}

func TestCopyOfManyRowsComesInBatches(t *testing.T) {
	c := newCopied(strings.NewReader(strings.Repeat("x\n", batchRecords)+"\n"), 1)
	defer c.close()
	rows := readAll(c)
	if len(rows) != batchRecords+1 || rows[batchRecords][0] != "" || c.Err() != nil {
		t.Errorf("%d rows, %v", len(rows), c.Err())
	}
}

func TestBrokenCopiesAreErrors(t *testing.T) {
	for name, in := range map[string]io.Reader{
		"too few columns":  strings.NewReader("a\n"),
		"too many columns": strings.NewReader("a\tb\tc\n"),
		"cut off":          strings.NewReader("a\tb"),
		"lost connection":  io.MultiReader(strings.NewReader("a\tb\n"), failing{}),
	} {
		t.Run(name, func(t *testing.T) {
			c := newCopied(in, 2)
			defer c.close()
			if readAll(c); c.Err() == nil {
				t.Error("no error")
			}
		})
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("connection lost") }
