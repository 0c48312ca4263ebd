package compare

import (
	"math"
	"slices"
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

// Measure is one round of one way. Sizes are bytes, times seconds; a pointer is nil where a way has no such thing.
type Measure struct {
	Deploy     float64    `json:"deploy_seconds"`  // from the deploy command to a view that serves the results
	DeployCPU  float64    `json:"deploy_cpu"`      // of the agent from its start to that moment and while it was watched
	Archive    *float64   `json:"archive_seconds"` // until the archive held what the topics held
	ArchiveCPU *float64   `json:"archive_cpu"`
	Batch      *float64   `json:"batch_seconds"` // the second full batch run
	BatchCPU   *float64   `json:"batch_cpu"`     // of both batch runs
	Fetched    int64      `json:"fetched_bytes"` // answers of the brokers to all agents of the round
	WAL        int64      `json:"wal_bytes"`     // of the PostgreSQL server meanwhile, others' writes included
	Table      int64      `json:"table_bytes"`   // version table with its indexes, at rest
	Batches    int64      `json:"batch_bytes"`   // batch generations with their indexes, at rest
	Archived   int64      `json:"archive_bytes"` // files
	Peak       int64      `json:"peak_bytes"`    // most that the tables took, staging included
	Freshness  *Freshness `json:"freshness"`     // nil: no record arrived
	Rows       int64      `json:"rows"`          // of the serving view
	Equal      bool       `json:"equal"`         // to one pass over the log
}

// Freshness is how long records took from being readable to being visible, in seconds.
type Freshness struct {
	Median  float64 `json:"median_seconds"`
	P99     float64 `json:"p99_seconds"`
	Samples int     `json:"samples"` // moments at which new records had become readable
}

// freshness finds out how long the ends of partitions take to become visible. An end is the offset that a request to
// the brokers returned as the last stable offset; it is visible when the committed position has reached it.
type freshness struct {
	ends    map[job.Partition]int64
	waiting map[job.Partition][]arrival
	took    []float64
}

type arrival struct {
	end int64
	at  time.Time
}

// look takes what the brokers and the version say at one moment. The first look only begins.
func (f *freshness) look(at time.Time, ends, positions map[job.Partition]int64) {
	first := f.ends == nil
	if first {
		f.ends, f.waiting = map[job.Partition]int64{}, map[job.Partition][]arrival{}
	}
	for p, end := range ends {
		if end > f.ends[p] && !first {
			f.waiting[p] = append(f.waiting[p], arrival{end, at})
		}
		f.ends[p] = end
	}
	for p, waiting := range f.waiting {
		n := 0
		for n < len(waiting) && waiting[n].end <= positions[p] {
			f.took = append(f.took, at.Sub(waiting[n].at).Seconds())
			n++
		}
		f.waiting[p] = waiting[n:]
	}
}

// result is nil when nothing arrived.
func (f *freshness) result() *Freshness {
	if len(f.took) == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(f.took))
	return &Freshness{Median: quantile(sorted, 0.5), P99: quantile(sorted, 0.99), Samples: len(sorted)}
}

// quantile of sorted values, by the nearest rank.
func quantile(sorted []float64, q float64) float64 {
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// Spread is a figure over the rounds.
type Spread struct {
	Median float64 `json:"median"`
	Least  float64 `json:"least"`
	Most   float64 `json:"most"`
}

// spread is false when no round has the figure.
func spread(values []float64) (Spread, bool) {
	if len(values) == 0 {
		return Spread{}, false
	}
	sorted := slices.Sorted(slices.Values(values))
	return Spread{Median: quantile(sorted, 0.5), Least: sorted[0], Most: sorted[len(sorted)-1]}, true
}
