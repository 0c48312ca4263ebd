package verify

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// copied reads rows in PostgreSQL's COPY text format as Arrow batches of text. One goroutine owns it.
type copied struct {
	in      *bufio.Reader
	builder *array.RecordBuilder
	columns int
	batch   arrow.RecordBatch
	ended   bool
	err     error
}

var _ array.RecordReader = (*copied)(nil)

// newCopied reads rows of n columns. They are named c0, c1, … inside one STRUCT column, as query.Session expects.
func newCopied(in io.Reader, n int) *copied {
	fields := make([]arrow.Field, n)
	for i := range fields {
		fields[i] = arrow.Field{Name: column(i), Type: arrow.BinaryTypes.String, Nullable: true}
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "r", Type: arrow.StructOf(fields...)}}, nil)
	return &copied{
		in: bufio.NewReaderSize(in, 256<<10), builder: array.NewRecordBuilder(memory.DefaultAllocator, schema), columns: n,
	}
}

func column(i int) string { return fmt.Sprintf("c%d", i) }

// Retain and Release do nothing: the creator owns the reader.
func (*copied) Retain()  {}
func (*copied) Release() {}

func (c *copied) Schema() *arrow.Schema          { return c.builder.Schema() }
func (c *copied) RecordBatch() arrow.RecordBatch { return c.batch }

// Record is the deprecated name of RecordBatch, which the interface requires.
func (c *copied) Record() arrow.RecordBatch { return c.batch }
func (c *copied) Err() error                { return c.err }

func (c *copied) close() {
	c.drop()
	c.builder.Release()
}

func (c *copied) drop() {
	if c.batch != nil {
		c.batch.Release()
		c.batch = nil
	}
}

// Next reads the next batch.
func (c *copied) Next() bool {
	c.drop()
	rows := 0
	for rows < batchRecords && !c.ended && c.err == nil {
		line, err := c.in.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			c.ended = true
			continue
		case err != nil:
			c.err = fmt.Errorf("copy the served rows: %w", err)
			return false
		}
		if c.err = c.append(line[:len(line)-1]); c.err == nil {
			rows++
		}
	}
	if c.err != nil || rows == 0 {
		return false
	}
	c.batch = c.builder.NewRecordBatch()
	return true
}

// append parses one line. A row of one column may be an empty line.
func (c *copied) append(line []byte) error {
	row := c.builder.Field(0).(*array.StructBuilder)
	row.Append(true)
	at := 0
	for i := range c.columns {
		if at > len(line) {
			return fmt.Errorf("copy the served rows: a row of %d columns, want %d", i, c.columns)
		}
		end := at
		for end < len(line) && line[end] != '\t' {
			end++
		}
		b := row.FieldBuilder(i).(*array.StringBuilder)
		if field := line[at:end]; string(field) == `\N` {
			b.AppendNull()
		} else {
			b.Append(unescape(field))
		}
		at = end + 1
	}
	if at != len(line)+1 {
		return fmt.Errorf("copy the served rows: a row of more than %d columns", c.columns)
	}
	return nil
}

// unescape decodes the backslash sequences that COPY writes.
func unescape(field []byte) string {
	out := make([]byte, 0, len(field))
	for i := 0; i < len(field); i++ {
		b := field[i]
		if b == '\\' && i+1 < len(field) {
			i++
			switch b = field[i]; b {
			case 'b':
				b = '\b'
			case 'f':
				b = '\f'
			case 'n':
				b = '\n'
			case 'r':
				b = '\r'
			case 't':
				b = '\t'
			case 'v':
				b = '\v'
			}
		}
		out = append(out, b)
	}
	return string(out)
}
