package format

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
)

// rowColumn is the one column of a batch.
const rowColumn = "r"

// MetaColumns are the names that a query may use beside the declared columns.
func MetaColumns() []string {
	return []string{"_topic", "_partition", "_offset", "_timestamp", "_key", "_headers"}
}

// Decoder turns records into Arrow batches with one struct column r. One goroutine owns it.
type Decoder struct {
	schema  *arrow.Schema
	reader  reader
	convert converter
	types   []typed  // of every declared column
	names   []string // of every declared column
	cells   []cell   // of every declared column, for the record at hand

	fields []field // of the struct
	length int
	// tombstones says that records without a value are rows: every declared column is NULL.
	tombstones bool
}

// field is one field of the struct and where its value comes from.
type field struct {
	*column
	source int    // declared column, -1 for a meta column
	meta   string // name of the meta column
}

// New makes a decoder whose batches hold these fields, in this order: declared columns and meta columns that a query reads.
// Every declared column is judged, also one that is not among them: whether a record is a dead letter depends on the record and
// the declared columns only.
func New(src job.Source, fields []string) (*Decoder, error) {
	d := &Decoder{}
	index := make(map[string]int, len(src.Columns))
	for i, c := range src.Columns {
		t, err := typeOf(c)
		if err != nil {
			return nil, err
		}
		index[c.Name] = i
		d.types, d.names = append(d.types, t), append(d.names, c.Name)
	}
	var err error
	if d.reader, err = readerOf(src, d.types, d.names); err != nil {
		return nil, err
	}
	d.cells = make([]cell, len(d.types))
	if len(fields) == 0 {
		fields = []string{"_offset"} // a struct has at least one field, count(*) reads none
	}
	members := make([]arrow.Field, len(fields))
	for i, name := range fields {
		f := field{source: -1, meta: name}
		t, ok := metaType(name)
		if n, declared := index[name]; declared {
			f.source, t, ok = n, d.types[n], true
		}
		if !ok {
			return nil, fmt.Errorf("field %q is neither a column nor one of %s", name, strings.Join(MetaColumns(), ", "))
		}
		d.tombstones = d.tombstones || f.meta == tombstoneField
		f.column = newColumn(t)
		members[i] = t.field(name)
		d.fields = append(d.fields, f)
	}
	d.schema = arrow.NewSchema([]arrow.Field{{Name: rowColumn, Type: arrow.StructOf(members...)}}, nil)
	return d, nil
}

// Schema is the schema of the batches.
func (d *Decoder) Schema() *arrow.Schema { return d.schema }

// Len is the number of records in the batch under construction.
func (d *Decoder) Len() int { return d.length }

// Size is the number of bytes in the batch under construction, so that large records make short batches.
func (d *Decoder) Size() int {
	n := 0
	for i := range d.fields {
		n += d.fields[i].size()
	}
	return n
}

// Append decodes rec into the batch under construction, or leaves the batch as it was and says why not.
func (d *Decoder) Append(rec *kgo.Record) *Reject {
	if rec.Value == nil && d.tombstones {
		return d.appendTombstone(rec)
	}
	if rec.Value == nil {
		return reject(NoValue, "the record has no value (a tombstone)")
	}
	in, spans, r := d.reader.read(rec.Value)
	if r != nil {
		return r
	}
	d.convert.reset()
	for i := range d.types {
		if r := d.convert.convert(&d.types[i], in, spans[i], &d.cells[i]); r != nil {
			r.Column = d.names[i]
			return r
		}
	}
	if r := judge(rec); r != nil {
		return r
	}
	for i := range d.fields {
		if f := &d.fields[i]; f.source >= 0 {
			f.append(&d.cells[f.source])
		} else {
			f.appendMeta(rec)
		}
	}
	d.length++
	return nil
}

// judge checks what the meta columns take from outside the value, whether a query reads them or not.
func judge(rec *kgo.Record) *Reject {
	for _, h := range rec.Headers {
		reason := ""
		switch {
		case !utf8.ValidString(h.Key):
			reason = InvalidUTF8
		case strings.IndexByte(h.Key, 0) >= 0:
			reason = NUL
		default:
			continue
		}
		return &Reject{Reason: reason, Column: "_headers", Detail: "the header name " + excerpt([]byte(h.Key))}
	}
	if ms, ok := timestamp(rec); ok && (ms < firstMicros/1000 || ms >= endMicros/1000) {
		return &Reject{Reason: OutOfRange, Column: "_timestamp", Detail: fmt.Sprintf("%d ms is outside the years 0001 to 9999", ms)}
	}
	return nil
}

// timestamp is the record's own timestamp in milliseconds; Kafka has -1 where there is none.
func timestamp(rec *kgo.Record) (ms int64, ok bool) {
	ms = rec.Timestamp.UnixMilli()
	return ms, ms != -1 && !rec.Timestamp.IsZero()
}

func (f *field) appendMeta(rec *kgo.Record) {
	switch f.meta {
	case "_topic":
		f.append(&cell{b: []byte(rec.Topic)})
	case "_partition":
		f.append(&cell{n: int64(rec.Partition)})
	case "_offset":
		f.append(&cell{n: rec.Offset})
	case "_timestamp":
		ms, ok := timestamp(rec)
		f.append(&cell{n: ms * 1000, null: !ok})
	case "_key":
		f.append(&cell{b: rec.Key, null: rec.Key == nil})
	case tombstoneField:
		n := int64(0)
		if rec.Value == nil {
			n = 1
		}
		f.append(&cell{n: n})
	case "_headers":
		for _, h := range rec.Headers {
			f.appendHeader(h.Key, h.Value)
		}
		f.append(&cell{})
	}
}

// Take returns the batch under construction and starts a new one. The caller releases it.
func (d *Decoder) Take() arrow.RecordBatch {
	children := make([]arrow.ArrayData, len(d.fields))
	for i := range d.fields {
		children[i] = d.fields[i].take()
	}
	data := array.NewData(d.schema.Field(0).Type, d.length, []*memory.Buffer{nil}, children, 0, 0)
	defer data.Release()
	for _, c := range children {
		c.Release()
	}
	row := array.NewStructData(data)
	defer row.Release()
	batch := array.NewRecordBatch(d.schema, []arrow.Array{row}, int64(d.length))
	d.length = 0
	return batch
}

// Close drops the batch under construction.
func (d *Decoder) Close() {
	for i := range d.fields {
		d.fields[i].restart()
	}
	d.length = 0
}
