package readiness

import (
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
)

const (
	deadFrom   = 1000             // number of records from which dead letters are judged
	deadFew    = 10               // number of dead letters from which fewer records are judged, as on a slow topic
	deadWindow = 10 * time.Minute // for a version that was live, dead letters of this period are judged
	maxCounts  = 1200

	// A candidate whose dead letters are within the limit is still clearly worse than live if it has at least worseFrom
	// of them, twice live's share, and a tenth of the limit.
	worseFrom = 10
)

// Counts are the numbers of records and dead letters of a version at a moment.
type Counts struct {
	At                   time.Time
	Records, DeadLetters int64
}

// Add adds a partition's records and dead letters.
func (c *Counts) Add(p job.Position) {
	c.Records += p.Records
	c.DeadLetters += p.DeadLetters
}

func (c Counts) seen() int64    { return max(c.Records, c.DeadLetters) }
func (c Counts) share() float64 { return float64(c.DeadLetters) / float64(max(c.seen(), 1)) }

// DeadLetters keeps the counts of a version over deadWindow. The version's controller owns it.
type DeadLetters struct{ counts []Counts }

// Observe adds the counts of a moment.
func (d *DeadLetters) Observe(c Counts) {
	d.counts = append(d.counts, c)
	for len(d.counts) > 1 && c.At.Sub(d.counts[1].At) >= deadWindow {
		d.counts = d.counts[1:]
	}
	if len(d.counts) > maxCounts {
		for i := 1; 2*i < len(d.counts); i++ { // every second sample is enough
			d.counts[i] = d.counts[2*i]
		}
		d.counts = d.counts[:len(d.counts)/2]
	}
}

// Recent returns the counts of the last deadWindow.
func (d *DeadLetters) Recent() Counts {
	last := d.All()
	if len(d.counts) > 0 {
		last.Records -= d.counts[0].Records
		last.DeadLetters -= d.counts[0].DeadLetters
	}
	return last
}

// All returns the counts since the version began.
func (d *DeadLetters) All() Counts {
	if len(d.counts) == 0 {
		return Counts{}
	}
	return d.counts[len(d.counts)-1]
}

// TooManyDeadLetters returns why a version with these counts is unhealthy; zero if it is not. limit is the largest
// share of dead letters that on_error allows. live are the counts that a candidate is compared with, nil if there are
// none. During a replay, few records are judged only once they include deadFew dead letters, which is no coincidence.
// complete is set for a candidate that has read everything; it is judged whatever its size.
func TooManyDeadLetters(ref job.Ref, limit float64, n Counts, live *Counts, complete bool) reason.Reason {
	share := n.share()
	switch {
	case n.seen() < deadFrom && n.DeadLetters < deadFew && !complete:
	case share > limit:
		return reason.DeadLetters(ref, n.DeadLetters, n.Records, share, limit)
	case live != nil && live.seen() >= deadFrom && n.DeadLetters >= worseFrom && share > 2*live.share() &&
		share >= limit/10:
		return reason.MoreDeadLetters(ref, n.DeadLetters, n.Records, share, live.share())
	}
	return reason.Reason{}
}
