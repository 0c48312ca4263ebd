package readiness

import (
	"maps"
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

// LeftSteps returns the times to deletion for which a log is asked for its offsets, in addition to the whole retention.
// They are close together where deletion is near.
func LeftSteps() []time.Duration {
	return []time.Duration{
		0, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
		24 * time.Hour, 2 * 24 * time.Hour, 4 * 24 * time.Hour, 8 * 24 * time.Hour, 16 * 24 * time.Hour,
	}
}

// Ages estimates when retention starts to delete the record at an offset, as of one moment. The zero value knows
// nothing.
type Ages struct {
	At     time.Time
	Topics map[string]job.TopicFacts
	steps  map[job.Partition][]ageStep
	growth map[job.Partition]job.Growth
	// archived holds the offsets that the archive has, whatever retention deletes.
	archived map[job.Partition]job.Range
}

// ageStep is the first offset that retention by time does not delete before a time.
type ageStep struct {
	offset int64
	until  time.Time
}

// NewAges returns the Ages of these topics without steps and growth.
func NewAges(at time.Time, topics []job.TopicFacts) Ages {
	a := Ages{
		At: at, Topics: make(map[string]job.TopicFacts, len(topics)),
		steps: map[job.Partition][]ageStep{}, growth: map[job.Partition]job.Growth{}, archived: map[job.Partition]job.Range{},
	}
	for _, t := range topics {
		a.Topics[t.Name] = t
	}
	return a
}

// AddStep adds the first offset that retention by time does not delete before until. Add the steps of a partition in
// the order of their times.
func (a Ages) AddStep(p job.Partition, offset int64, until time.Time) {
	a.steps[p] = append(a.steps[p], ageStep{offset: offset, until: until})
}

// SetGrowth sets how fast the log of a partition grows, for retention by size.
func (a Ages) SetGrowth(p job.Partition, g job.Growth) { a.growth[p] = g }

// SetArchived sets the offsets that the archive holds.
func (a Ages) SetArchived(kept map[job.Partition]job.Range) { maps.Copy(a.archived, kept) }

// Archived returns how many offsets of a range the archive holds.
func (a Ages) Archived(p job.Partition, r job.Range) int64 {
	kept := a.archived[p]
	return max(0, min(r.To, kept.To)-max(r.From, kept.From))
}

// Deadline returns the earliest time at which the record at an offset may be deleted, by time or by size; nil if its
// topic keeps records without limit, or if it is unknown. It is a lower bound: Kafka deletes whole segment files, by
// their newest record. Archived records have no deadline.
func (a Ages) Deadline(p job.Partition, offset int64) *time.Time {
	if a.Archived(p, job.Range{From: offset, To: offset + 1}) > 0 {
		return nil
	}
	byTime, bySize := a.byTime(p, offset), a.bySize(p, offset)
	if byTime == nil || bySize != nil && bySize.Before(*byTime) {
		return bySize
	}
	return byTime
}

func (a Ages) byTime(p job.Partition, offset int64) *time.Time {
	steps := a.steps[p]
	if len(steps) == 0 {
		return nil
	}
	for i := len(steps) - 1; i >= 0; i-- {
		if steps[i].offset <= offset {
			return &steps[i].until
		}
	}
	return &a.At // older than its retention: deleted at the broker's next check
}

func (a Ages) bySize(p job.Partition, offset int64) *time.Time {
	g, known := a.growth[p]
	limit := a.Topics[p.Topic].RetentionBytes
	if !known || limit < 0 {
		return nil
	}
	return g.Deadline(offset, limit, a.At)
}

// Overtaken returns when the part of the range that a replay has not read yet may be deleted, if the replay starts now
// and lasts takes; nil if every record is read within half of its remaining time. It checks the range in 16 steps from
// its oldest offset. Most topics have records older than their retention, which remain until the broker's next check;
// each step therefore has at least a minute.
func (a Ages) Overtaken(f job.Frozen, takes time.Duration) *time.Time {
	const steps = 16
	for step := range int64(steps) {
		d := a.Deadline(f.Partition, f.From+f.Len()*step/steps)
		if d == nil || f.From >= f.To {
			continue
		}
		if readBy := takes / steps * time.Duration(step+1); 2*readBy > max(d.Sub(a.At), time.Minute) {
			return d
		}
	}
	return nil
}

// Seconds returns a duration of that many seconds, at most 100 years.
func Seconds(s float64) time.Duration {
	const most = 100 * 365 * 24 * time.Hour
	if s > most.Seconds() {
		return most
	}
	return time.Duration(s * float64(time.Second))
}
