package scaffold

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
)

// plan is the first query of a job: records counted by a field and a period, with the total of a number.
type plan struct {
	items  []string // of the SELECT
	keys   []string // of the GROUP BY
	from   string
	where  string // empty: no condition
	suffix string // of the view's name
	// needs are the columns that the records of the test have.
	needs []*column
	// recordTime is set if the query reads the time of the records themselves.
	recordTime bool
}

// plans are the queries to try, the best first. The last one is a count.
func (d *draft) plans() []plan {
	if d.source.Format == "raw" {
		return []plan{d.assemble(nil, nil, nil)}
	}
	var out []plan
	if d.changes != nil {
		if p, found := d.ledger(); found {
			out = append(out, p)
		}
	}
	group, at, measure := d.group(), d.time(), d.measure()
	return append(out,
		d.assemble(group, at, measure), d.assemble(group, at, nil), d.assemble(nil, at, nil), d.assemble(nil, nil, nil))
}

// assemble writes the query.
func (d *draft) assemble(group, at, measure *column) plan {
	p := plan{from: "source"}
	taken := map[string]bool{}
	for _, c := range d.columns {
		taken[strings.ToLower(c.Name)] = true // GROUP BY prefers a field to an output of the same name
	}
	if d.list {
		p.from = `(SELECT unnest(json_extract(v, '$[*]')) AS item, _timestamp FROM source)`
	}
	if group != nil {
		p.add(group.Name, "")
		p.keys, p.needs = append(p.keys, group.Name), append(p.needs, group)
	}
	p.period(d, at, taken)
	p.add("count(*)", unique("records", taken))
	if measure != nil {
		p.add("sum("+measure.Name+")", unique("total_"+measure.Name, taken))
		p.needs = append(p.needs, measure)
	}
	return p
}

func (p *plan) add(expression, name string) {
	if name != "" {
		expression += " AS " + name
	}
	p.items = append(p.items, expression)
}

// period adds the group of a time: that of a column, or of the records.
func (p *plan) period(d *draft, at *column, taken map[string]bool) {
	field, days := "_timestamp", map[string]bool{}
	if at == nil {
		p.recordTime = true
		for _, r := range d.values {
			days[r.Timestamp.UTC().Format(time.DateOnly)] = true
		}
	} else {
		field, days = at.Name, at.days()
		p.needs = append(p.needs, at)
	}
	grain := "hour"
	if spread(days) > 3 {
		grain = "day"
	}
	if at != nil && at.Type == "date" {
		p.add(field, "")
		p.keys, p.suffix = append(p.keys, field), "_daily"
		return
	}
	name := unique(grain, taken)
	p.add(fmt.Sprintf("date_trunc('%s', %s)", grain, field), name)
	p.keys, p.suffix = append(p.keys, name), map[string]string{"hour": "_hourly", "day": "_daily"}[grain]
}

// spread is how many days lie between the first and the last.
func spread(days map[string]bool) int {
	var first, last time.Time
	for day := range days {
		at, err := time.Parse(time.DateOnly, day)
		if err != nil {
			continue
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
		if at.After(last) {
			last = at
		}
	}
	return int(last.Sub(first).Hours() / 24)
}

// days are the days of a time column's values in the sample.
func (c *column) days() map[string]bool {
	out := map[string]bool{}
	unit := map[string]float64{"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}[c.Unit]
	for _, v := range c.values {
		if unit == 0 {
			out[v[1:min(len(v), 11)]] = true
			continue
		}
		if f, err := json.Number(v).Float64(); err == nil {
			out[time.Unix(int64(f/unit), 0).UTC().Format(time.DateOnly)] = true
		}
	}
	return out
}

// often reports whether nearly all records have the column.
func (d *draft) often(c *column) bool { return 10*c.present() >= 9*len(d.values) }

// group is the first text, else the first number, with few different values.
func (d *draft) group() *column {
	most := 100
	if n := len(d.values); n > 10 {
		most = min(most, n/2)
	}
	for _, labels := range [][]string{{"text", "boolean"}, {"bigint"}} {
		c := d.first(func(c *column) bool {
			return slices.Contains(labels, c.label) && len(c.values) > 1 && len(c.values) <= most && !keyLike(c)
		})
		if c != nil {
			return c
		}
	}
	return nil
}

// time is the time of the event: a column with a name of that kind before others.
func (d *draft) time() *column {
	times := []string{"timestamptz", "date"}
	named := d.first(func(c *column) bool { return slices.Contains(times, c.label) && timeName.MatchString(c.Name) })
	if named != nil {
		return named
	}
	return d.first(func(c *column) bool { return slices.Contains(times, c.label) })
}

// measure is the first number that is worth adding up.
func (d *draft) measure() *column {
	sum := d.first(func(c *column) bool {
		return strings.HasPrefix(c.label, "numeric(18") && !keyLike(c) || c.label == "double precision" &&
			!place.MatchString(c.Name)
	})
	if sum != nil {
		return sum
	}
	return d.first(func(c *column) bool { return c.label == "bigint" && !keyLike(c) && len(c.values) > 1 })
}

// place matches coordinates and rates, whose sum means nothing.
var place = regexp.MustCompile(`(^|_)(lat|lon|lng|latitude|longitude|x|y|z|rate|ratio|score|percent|temperature)(_|$)`)

// keyName matches names of numbers and texts that identify something.
var keyName = regexp.MustCompile(`(^|_)(id|ids|uuid|guid|key|no|nr|number|code|zip|year|month|version|port|offset|partition|` +
	`sequence|seq|hash|token|email|phone|lsn)$`)

func keyLike(c *column) bool { return keyName.MatchString(strings.TrimSuffix(c.Name, "_")) }

func (d *draft) first(fits func(*column) bool) *column {
	for _, c := range d.columns {
		if d.often(c) && fits(c) {
			return c
		}
	}
	return nil
}

// testRecords is how many records the test has.
const testRecords = 2

// given are the records of the test: the two shortest that have what the query reads, of the same group if possible.
func (d *draft) given(p plan) []job.Given {
	records := slices.Clone(d.values)
	slices.SortStableFunc(records, func(a, b *kgo.Record) int { return len(a.Value) - len(b.Value) })
	var out []job.Given
	for _, complete := range []bool{true, false} {
		for _, r := range records {
			if len(out) < testRecords && d.complete(r, p) == complete {
				out = append(out, d.record(r, p))
			}
		}
	}
	return out
}

// complete reports whether a record has a value for all the columns that the query reads.
func (d *draft) complete(r *kgo.Record, p plan) bool {
	for _, c := range p.needs {
		if !has(text(r), c.path) {
			return false
		}
	}
	return true
}

// has reports whether there is a value other than null at a path.
func has(raw json.RawMessage, path []job.Step) bool {
	if len(path) == 0 {
		return string(raw) != "null"
	}
	if len(raw) == 0 || raw[0] != '{' {
		return false
	}
	found := false
	err := members(raw, func(name string, value json.RawMessage) error {
		if name == path[0].Name {
			found = has(value, path[1:])
		}
		return nil
	})
	return err == nil && found
}
