package scaffold

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/format"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/query"
	"github.com/kappactl/kappactl/internal/trial"
)

// Options are what a person decides about the job file.
type Options struct {
	Job   job.Name
	Topic string
	View  string // empty: public.JOB_hourly or the like
	// Mask replaces letters and digits of the records in the test. Times, booleans and the shape of values are kept.
	Mask bool
}

// Draft is a job file that check and test accept.
type Draft struct {
	Text    []byte
	View    string
	Format  string
	Columns []job.Column
	// Records is the number of records in the sample.
	Records int
	// Tombstones are records without a value, and Rejected those that the job would set aside; First is why the first
	// of them.
	Tombstones, Rejected int
	First                string
}

// maxColumns is how many columns are declared at most.
const maxColumns = 100

// draft is a Draft in the making.
type draft struct {
	Options
	Draft
	source  job.Source
	columns []*column
	values  []*kgo.Record // the records that the job can process
	left    int           // fields at the top that have no column
	list    bool          // records of format raw are JSON arrays
	changes *node         // where the records have Debezium's envelope; nil: they have none
}

// column is a column with what the sample says about it.
type column struct {
	job.Column
	*node
	label string // the type as it is written
	note  string
}

// ErrNoRecords is the error of a sample without a record that has a value.
var ErrNoRecords = errors.New("no records with a value")

// New writes a job file for the records of a topic. A *format.Reject is the error of a topic whose values no job can
// read, such as Avro.
func New(ctx context.Context, records []*kgo.Record, o Options) (Draft, error) {
	d := &draft{Options: o}
	d.Records = len(records)
	values := slices.DeleteFunc(slices.Clone(records), func(r *kgo.Record) bool { return r.Value == nil })
	d.Tombstones = len(records) - len(values)
	if len(values) == 0 {
		return Draft{}, ErrNoRecords
	}
	if err := d.declare(values); err != nil {
		return Draft{}, err
	}
	if err := d.decode(values); err != nil {
		return Draft{}, err
	}
	var last error
	for _, plan := range d.plans() {
		if last = d.finish(ctx, plan); last == nil {
			return d.Draft, nil
		}
	}
	return Draft{}, fmt.Errorf("write a job file for topic %s: %w", o.Topic, last)
}

// declare finds format and columns.
func (d *draft) declare(values []*kgo.Record) error {
	d.source = job.Source{Topics: []string{d.Topic}, OnError: job.OnError{Max: 0.001, SkipTombstones: d.Tombstones > 0}}
	root, objects, others := newNode("", nil), 0, 0
	for i := range values { // the oldest and the newest by turns: only the first values of a field are kept
		r := values[i/2]
		if i%2 == 1 {
			r = values[len(values)-1-i/2]
		}
		text := bytes.TrimSpace(bytes.TrimPrefix(r.Value, []byte("\ufeff")))
		switch {
		case !json.Valid(text) || !utf8.Valid(text):
		case text[0] == '{':
			objects++
			if err := root.add(text); err != nil {
				return err
			}
		default:
			others++
			d.list = d.list || text[0] == '['
		}
	}
	switch whole := len(values) - objects - others; {
	case objects > 0 && objects >= others && objects >= whole && len(root.children) > 0:
		d.source.Format = "json"
		if d.changes = envelope(root); d.changes != nil {
			alike(d.changes.index["after"], d.changes.index["before"])
			d.source.OnError.SkipTombstones = true
		}
		return d.fields(root)
	case objects+others > 0 && objects+others >= whole:
		d.source.Format = "raw"
		return d.whole("v", jsonb)
	}
	return d.text(values)
}

// text declares records that are no JSON: rows of CSV, lines of text, or values that nothing can read.
func (d *draft) text(values []*kgo.Record) error {
	probe, err := format.New(job.Source{Format: "json", Columns: []job.Column{{Name: "v", Type: "jsonb"}}}, nil)
	if err != nil {
		return err
	}
	defer probe.Close()
	for _, r := range values {
		if utf8.Valid(r.Value) && !bytes.ContainsRune(r.Value, 0) {
			continue
		}
		if reject := probe.Append(r); reject != nil {
			return reject
		}
	}
	if found, err := d.rows(values); found || err != nil {
		return err
	}
	d.source.Format = "raw"
	return d.whole("line", candidate{typ: "text"})
}

// whole declares the one column of format raw.
func (d *draft) whole(name string, c candidate) error {
	one, err := newColumn(name, []job.Step{{Name: name, Index: -1}}, c)
	if err != nil {
		return err
	}
	d.columns = []*column{{Column: one, node: newNode(name, nil), label: c.typ}}
	d.source.Columns = []job.Column{one}
	return nil
}

// fields declares a column for each field of the records' objects.
func (d *draft) fields(root *node) error {
	depth := maxDepth
	leaves := root.leaves(depth)
	for len(leaves) > maxColumns && depth > 1 {
		depth--
		leaves = root.leaves(depth)
	}
	if len(leaves) > maxColumns {
		d.left = len(leaves) - maxColumns
		leaves = leaves[:maxColumns]
	}
	names, taken := make([]string, len(leaves)), map[string]bool{}
	for _, nested := range []bool{false, true} { // fields at the top keep their names
		for i, n := range leaves {
			if nested == (len(n.path) > 1) {
				names[i] = unique(columnName(n.path), taken)
			}
		}
	}
	for i, n := range leaves {
		c := n.infer()
		one, err := newColumn(names[i], n.path, c)
		if err != nil {
			return err
		}
		d.columns = append(d.columns, &column{Column: one, node: n, label: c.typ, note: n.note(root.objects)})
	}
	return nil
}

// note describes what is unusual about the values at n, of which there could be as many as there are records.
func (n *node) note(records int) string {
	switch lacking := records - n.present(); {
	case n.present() == 0:
		return "null in every sampled record"
	case n.objects > 0 && n.objects < n.present(), kinds(n) > 1:
		return "of several types"
	case n.arrays > 0:
		return "a list"
	case n.objects > 0:
		return "an object"
	case n.texts > 0 && n.looksLike(numberText):
		return "numbers written as text: CAST(… AS DECIMAL(18,2)) in the query"
	case lacking > 0 && records > 0:
		return fmt.Sprintf("missing or null in %s of the sample", share(lacking, records))
	}
	return ""
}

func kinds(n *node) int {
	out := 0
	for _, k := range []int{n.objects, n.arrays, n.texts, n.numbers, n.booleans} {
		if k > 0 {
			out++
		}
	}
	return out
}

func share(part, of int) string {
	if percent := 100 * part / of; percent > 0 {
		return fmt.Sprintf("%d%%", percent)
	}
	return "less than 1%"
}

// decode keeps the records that the job can process. A column whose type the decoder refuses for a record becomes
// jsonb, one that it refuses as jsonb too is left out when it refuses most of the records.
func (d *draft) decode(values []*kgo.Record) error {
	for range 3 * maxColumns {
		d.source.Columns = nil
		for _, c := range d.columns {
			d.source.Columns = append(d.source.Columns, c.Column)
		}
		refused, err := d.attempt(values)
		if err != nil {
			return err
		}
		if refused == nil {
			break
		}
		if refused.label == jsonb.typ {
			d.columns = slices.DeleteFunc(d.columns, func(c *column) bool { return c == refused })
			d.left++
			continue
		}
		refused.Type, refused.Unit, refused.label, refused.note = jsonb.typ, "", jsonb.typ, "of several types"
	}
	if len(d.values) == 0 || len(d.columns) == 0 {
		return fmt.Errorf("none of the %d sampled records can be read: %s", len(values), d.First)
	}
	d.Columns, d.Format = d.source.Columns, d.source.Format
	return nil
}

// attempt decodes the records. It returns the column whose declaration is to change, if there is one.
func (d *draft) attempt(values []*kgo.Record) (*column, error) {
	decoder, err := format.New(d.source, nil)
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	d.values, d.Rejected, d.First = nil, 0, ""
	by := map[string]int{}
	for _, r := range values {
		reject := decoder.Append(r)
		if reject == nil {
			d.values = append(d.values, r)
			continue
		}
		by[reject.Column]++
		i := slices.IndexFunc(d.columns, func(c *column) bool { return c.Name == reject.Column })
		if i >= 0 && d.source.Format == "json" && reject.Retypable() &&
			(d.columns[i].label != jsonb.typ || 2*by[reject.Column] > len(values)) {
			return d.columns[i], nil
		}
		if d.Rejected++; d.Rejected == 1 {
			d.First = reject.Error()
			if d.Mask { // the detail quotes the value
				d.First = reject.Reason
			}
		}
	}
	return nil, nil
}

// finish writes the file for a query, fills in what the test expects, and proves that the file is valid.
func (d *draft) finish(ctx context.Context, p plan) error {
	d.Draft.View = d.Options.View
	if d.Draft.View == "" {
		d.Draft.View = "public." + string(d.Job) + p.suffix
	}
	given := d.given(p)
	spec, compiled, err := compile(ctx, d.write(p, given, nil))
	if err != nil {
		return err
	}
	results, err := trial.Run(ctx, spec, compiled, nil)
	if err != nil {
		return err
	}
	rows, err := actual(results[0])
	if err != nil {
		return err
	}
	d.Text = d.write(p, given, expected(compiled.Layout.View, rows))
	if spec, err = job.Parse("job file", d.Text); err != nil {
		return err
	}
	if results, err = trial.Run(ctx, spec, compiled, nil); err == nil && !results[0].OK {
		err = errors.New("its test fails")
	}
	return err
}

func compile(ctx context.Context, text []byte) (*job.Spec, *query.Compiled, error) {
	spec, err := job.Parse("job file", text)
	if err != nil {
		return nil, nil, err
	}
	compiled, err := query.Compile(ctx, spec)
	if err == nil {
		err = spec.CheckColumns(compiled.Layout)
	}
	return spec, compiled, err
}

// actual are the rows of a test that expects none.
func actual(r trial.Result) ([]map[string]*string, error) {
	if r.Error != "" {
		return nil, errors.New(r.Error)
	}
	if len(r.DeadLetters) > 0 {
		return nil, errors.New(r.DeadLetters[0].Detail)
	}
	var rows []map[string]*string
	for _, d := range r.Differences {
		rows = append(rows, d.Row)
	}
	return rows, nil
}
