package scaffold

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/format"
	"github.com/kappactl/kappactl/internal/job"
)

// candidate is a type that a column may have.
type candidate struct {
	typ  string // as people write it
	unit string
}

var jsonb = candidate{typ: "jsonb"}

// candidates are the types to try for the values at n, the narrowest first.
func (n *node) candidates() []candidate {
	switch all := n.present(); {
	case all == 0, n.objects > 0, n.arrays > 0:
		return []candidate{jsonb}
	case n.booleans == all:
		return []candidate{{typ: "boolean"}, jsonb}
	case n.numbers == all:
		return append(n.numeric(), jsonb)
	case n.texts == all && n.looksLike(hyphenatedUUID):
		return []candidate{{typ: "uuid"}, {typ: "text"}}
	case n.texts == all && n.looksLike(clockTime):
		return []candidate{{typ: "time"}, {typ: "text"}}
	case n.texts == all && n.looksLike(isoDate):
		return []candidate{{typ: "date"}, {typ: "timestamptz"}, {typ: "text"}}
	case n.texts == all:
		return []candidate{{typ: "text"}}
	}
	return []candidate{jsonb}
}

// What texts of some types begin with. The decoder decides; these keep text of digits alone from being a date.
var (
	hyphenatedUUID = regexp.MustCompile(`^"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"$`)
	clockTime      = regexp.MustCompile(`^"[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?"$`)
	isoDate        = regexp.MustCompile(`^"[0-9]{4}-[0-9]{2}-[0-9]{2}`)
	numberText     = regexp.MustCompile(`^"-?(0|[1-9][0-9]*)(\.[0-9]+)?"$`)
)

func (n *node) looksLike(p *regexp.Regexp) bool {
	for _, v := range n.values {
		if !p.MatchString(v) {
			return false
		}
	}
	return len(n.values) > 0
}

// maxScale is the most decimal places that are declared exactly. Numbers with more are measurements, not money.
const maxScale = 4

// timeName matches names of fields that hold a time.
var timeName = regexp.MustCompile(`(^|_)(ts|time|timestamp|timestampms|at|date|datetime|when|created|updated|modified|occurred|` +
	`epoch)(_|$)|_(ms|us|ns)$`)

// numeric are the types to try for numbers.
func (n *node) numeric() []candidate {
	if timeName.MatchString(snake(n.name)) {
		if unit := n.epochUnit(); unit != "" {
			return []candidate{{typ: "timestamptz", unit: unit}, {typ: "bigint"}}
		}
	}
	scale, exact := n.scale()
	if !exact || scale > maxScale {
		return []candidate{{typ: "double precision"}}
	}
	out := []candidate{
		{typ: fmt.Sprintf("numeric(18,%d)", scale)},
		{typ: fmt.Sprintf("numeric(38,%d)", scale)},
		{typ: "double precision"},
	}
	if scale == 0 {
		out = append([]candidate{{typ: "bigint"}}, out[1:]...)
	}
	return out
}

// scale is the largest number of decimal places; exact is false if a number has an exponent.
func (n *node) scale() (scale int, exact bool) {
	for _, v := range n.values {
		if strings.ContainsAny(v, "eE") {
			return 0, false
		}
		if _, decimals, found := strings.Cut(v, "."); found {
			scale = max(scale, len(decimals))
		}
	}
	return scale, true
}

// epochUnit is the unit in which all the numbers are times of this century's first decades.
func (n *node) epochUnit() string {
	const from, to = 946_684_800, 2_524_608_000 // 2000 to 2050, in seconds
	for _, u := range []struct {
		unit  string
		times float64
	}{{"s", 1}, {"ms", 1e3}, {"us", 1e6}, {"ns", 1e9}} {
		fits := len(n.values) > 0
		for _, v := range n.values {
			f, err := json.Number(v).Float64()
			fits = fits && err == nil && f >= from*u.times && f < to*u.times
		}
		if fits {
			return u.unit
		}
	}
	return ""
}

// infer returns the first type with which the decoder takes all the values.
func (n *node) infer() candidate {
	all := n.candidates()
	for _, c := range all {
		if accepts(c, n.values) {
			return c
		}
	}
	return all[len(all)-1]
}

// accepts reports whether the decoder converts each JSON value to the type.
func accepts(c candidate, values []string) bool {
	column, err := newColumn("v", []job.Step{{Name: "v", Index: -1}}, c)
	if err != nil {
		return false
	}
	d, err := format.New(job.Source{Format: "json", Columns: []job.Column{column}}, []string{"v"})
	if err != nil {
		return false
	}
	defer d.Close()
	for _, v := range values {
		if d.Append(&kgo.Record{Value: []byte(`{"v":` + v + `}`)}) != nil {
			return false
		}
	}
	return true
}

// newColumn declares the value at a path as a column.
func newColumn(name string, path []job.Step, c candidate) (job.Column, error) {
	typ, err := job.ParseType(c.typ)
	if err != nil {
		return job.Column{}, err
	}
	out := job.Column{Name: name, Type: typ, Unit: c.unit}
	if text := job.PathText(path); text != job.PathText([]job.Step{{Name: name, Index: -1}}) {
		out.Path = text
	}
	return out, nil
}
