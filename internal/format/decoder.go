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

// Version is that of the decoder. It rises when a record may be decoded to other values, or rejected otherwise, than
// before: what was kept of its results is then not used any more.
const Version = 1

// mostFixed is the most bytes that a field takes of a record beside its key, its value and its headers: the name of a
// topic has up to 249, and a place in the column.
const mostFixed = 249 + 16

// rowColumn is the only column of a batch.
const rowColumn = "r"

// MetaColumns returns the names that a query may use in addition to the declared columns.
func MetaColumns() []string {
	return []string{"_topic", "_partition", "_offset", "_timestamp", "_key", "_headers"}
}

// Decoder converts records into Arrow batches with one struct column r. One goroutine owns it.
type Decoder struct {
	schema  *arrow.Schema
	reader  reader
	convert converter
	types   []typed  // of every declared column
	names   []string // of every declared column
	cells   []cell   // of every declared column, for the current record

	fields []field // of the struct
	length int
	sized  int // Size when it was last asked for
	added  int // bytes that the fields can have taken since, at most
	// tombstones makes records without a value rows in which every declared column is NULL.
	tombstones bool
	skips      bool // records without a value are left out
}

// field is one field of the struct and the source of its value.
type field struct {
	*column
	source int    // declared column, -1 for a meta column
	meta   string // name of the meta column
}

// New creates a decoder whose batches have these fields, in this order: the declared and meta columns that the query
// reads. The decoder checks every declared column, also those that are not fields: whether a record is a dead letter
// depends only on the record and the declared columns.
func New(src job.Source, fields []string) (*Decoder, error) {
	d := &Decoder{skips: src.OnError.SkipTombstones}
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
		fields = []string{"_offset"} // a struct has at least one field; count(*) reads none
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

// Schema returns the schema of the batches.
func (d *Decoder) Schema() *arrow.Schema { return d.schema }

// Len returns the number of records in the current batch.
func (d *Decoder) Len() int { return d.length }

// Size returns the number of bytes in the current batch, so that a caller can cut batches of large records short.
func (d *Decoder) Size() int {
	n := 0
	for i := range d.fields {
		n += d.fields[i].size()
	}
	return n
}

// Reaches reports whether the current batch has that many bytes. It is cheaper than Size, and meant to be asked after
// each record.
func (d *Decoder) Reaches(bytes int) bool {
	if d.sized+d.added < bytes {
		return false
	}
	d.sized, d.added = d.Size(), 0
	return d.sized >= bytes
}

// Append decodes rec into the current batch, or leaves the batch unchanged and returns the reason. A tombstone that the
// job skips returns nil and adds nothing.
func (d *Decoder) Append(rec *kgo.Record) *Reject {
	if rec.Value == nil && d.tombstones {
		return d.appendTombstone(rec)
	}
	if rec.Value == nil && d.skips {
		return nil
	}
	if rec.Value == nil {
		return reject(NoValue, "the record has no value (a tombstone)").fix(
			"leave tombstones out by source.on_error: {tombstones: skip}, or serve the latest row of a key, which they delete")
	}
	in, spans, r := d.reader.read(rec.Value)
	if r != nil {
		return r
	}
	d.convert.reset()
	for i := range d.types {
		if v := &spans[i]; v.kind == '"' && !v.escaped && d.types[i].anyText {
			d.cells[i].b, d.cells[i].null = in[v.from:v.to], false
			continue
		}
		if r := d.convert.convert(&d.types[i], in, spans[i], &d.cells[i]); r != nil {
			return r.of(d.names[i], &d.types[i], spans[i].kind)
		}
	}
	if r := judge(rec); r != nil {
		return r
	}
	for i := range d.fields {
		if f := &d.fields[i]; f.source >= 0 {
			f.append(&d.cells[f.source])
		} else {
			d.appendMeta(f, rec)
		}
	}
	d.grow(rec)
	return nil
}

// grow counts a row whose fields are appended.
func (d *Decoder) grow(rec *kgo.Record) {
	d.length++
	d.added += len(d.fields) * (len(rec.Key) + len(rec.Value) + mostFixed)
}

// judge checks the parts of a record that meta columns read, whether the query uses them or not.
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
		return &Reject{
			Reason: OutOfRange, Column: "_timestamp", Detail: fmt.Sprintf("%d ms is outside the years 0001 to 9999", ms),
		}
	}
	return nil
}

// timestamp returns the record's own timestamp in milliseconds; Kafka uses -1 for none.
func timestamp(rec *kgo.Record) (ms int64, ok bool) {
	ms = rec.Timestamp.UnixMilli()
	return ms, ms != -1 && !rec.Timestamp.IsZero()
}

func (d *Decoder) appendMeta(f *field, rec *kgo.Record) {
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
			d.added += len(h.Key) + len(h.Value) + 2*mostFixed
		}
		f.append(&cell{})
	}
}

// Take returns the current batch and starts a new one. The caller releases it.
func (d *Decoder) Take() arrow.RecordBatch {
	children := make([]arrow.ArrayData, len(d.fields))
	for i := range d.fields {
		children[i] = d.fields[i].take()
	}
	batch := d.Batch(children, d.length)
	d.length, d.sized, d.added = 0, 0, 0
	return batch
}

// Batch makes a batch of the decoder's schema from its fields, of n values each. It takes over the fields.
func (d *Decoder) Batch(fields []arrow.ArrayData, n int) arrow.RecordBatch {
	data := array.NewData(d.schema.Field(0).Type, n, []*memory.Buffer{nil}, fields, 0, 0)
	defer data.Release()
	for _, f := range fields {
		f.Release()
	}
	row := array.NewStructData(data)
	defer row.Release()
	return array.NewRecordBatch(d.schema, []arrow.Array{row}, int64(n))
}

// Close discards the current batch.
func (d *Decoder) Close() {
	for i := range d.fields {
		d.fields[i].restart()
	}
	d.length, d.sized, d.added = 0, 0, 0
}
