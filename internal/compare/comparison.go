package compare

import (
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
)

// Schema is the version of the JSON document. Fields are only added to it.
const Schema = 1

// Comparison is a job measured in every way, over some rounds.
type Comparison struct {
	Schema  int               `json:"schema"`
	At      time.Time         `json:"at"`
	Job     job.Name          `json:"job"`
	Ref     string            `json:"version"`
	Records int64             `json:"records"` // that a replay processed, in the last round
	IdleWAL float64           `json:"idle_wal_bytes_per_second"`
	Seconds float64           `json:"watched_seconds"` // for how long freshness was measured
	Rounds  int               `json:"rounds"`
	Ways    map[Way][]Measure `json:"ways"`
}

// Exact reports whether every round of every way served what one pass over the log gives.
func (c Comparison) Exact() bool {
	for _, rounds := range c.Ways {
		for _, m := range rounds {
			if !m.Equal {
				return false
			}
		}
	}
	return true
}

// Figure is one line of the table.
type Figure struct {
	Name  string
	Note  string // what the figure is, for the page
	cells func(m Measure) *float64
	text  func(v float64) string
}

// Cell is a figure of a way as text; median and range. missing is printed where the way has no such figure.
func (f Figure) Cell(rounds []Measure, missing string) string {
	s, found := f.Spread(rounds)
	switch {
	case !found:
		return missing
	case f.text(s.Least) == f.text(s.Most):
		return f.text(s.Median)
	}
	return f.text(s.Median) + " (" + f.text(s.Least) + " to " + f.text(s.Most) + ")"
}

// Spread is the figure over the rounds of a way.
func (f Figure) Spread(rounds []Measure) (Spread, bool) {
	var values []float64
	for _, m := range rounds {
		if v := f.cells(m); v != nil {
			values = append(values, *v)
		}
	}
	return spread(values)
}

// Figures are the lines of the table.
func Figures() []Figure {
	seconds := func(v float64) string { return render.Seconds(&v) }
	size := func(v float64) string { return render.Bytes(int64(v)) }
	of := func(f func(Measure) float64) func(Measure) *float64 {
		return func(m Measure) *float64 { v := f(m); return &v }
	}
	fresh := func(f func(Freshness) float64) func(Measure) *float64 {
		return func(m Measure) *float64 {
			if m.Freshness == nil {
				return nil
			}
			v := f(*m.Freshness)
			return &v
		}
	}
	return []Figure{
		{
			"time to fix a bug", "deploy of a version over all history, until readers see it",
			of(func(m Measure) float64 { return m.Deploy }), seconds,
		},
		{"freshness, median", "from readable to visible", fresh(func(f Freshness) float64 { return f.Median }), seconds},
		{"freshness, p99", "", fresh(func(f Freshness) float64 { return f.P99 }), seconds},
		{
			"agent CPU, deploy", "replay and the time that was watched", of(func(m Measure) float64 { return m.DeployCPU }),
			seconds,
		},
		{"archive filled in", "", func(m Measure) *float64 { return m.Archive }, seconds},
		{"agent CPU, archive", "", func(m Measure) *float64 { return m.ArchiveCPU }, seconds},
		{"batch run", "from scratch", func(m Measure) *float64 { return m.Batch }, seconds},
		{"agent CPU, 2 batch runs", "", func(m Measure) *float64 { return m.BatchCPU }, seconds},
		{
			"read from the brokers", "by the archiver, the replay and live",
			of(func(m Measure) float64 { return float64(m.Fetched) }), size,
		},
		{"WAL", "of the whole server meanwhile", of(func(m Measure) float64 { return float64(m.WAL) }), size},
		{"version table", "at rest", of(func(m Measure) float64 { return float64(m.Table) }), size},
		{"batch generations", "at rest, after two runs", of(func(m Measure) float64 { return float64(m.Batches) }), size},
		{"archive", "files", of(func(m Measure) float64 { return float64(m.Archived) }), size},
		{"tables, peak", "staging included", of(func(m Measure) float64 { return float64(m.Peak) }), size},
	}
}
