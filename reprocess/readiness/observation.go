package readiness

import (
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
)

// StaleAfter is the age after which a sample's numbers are unknown.
const StaleAfter = 5 * time.Second

// Observation is the stored state of one partition of a version; nil is unknown.
type Observation struct {
	TopicID     string        `json:"topic_id"`
	Topic       string        `json:"topic"`
	Partition   int32         `json:"partition"`
	LogStart    *int64        `json:"log_start"`
	LastStable  *int64        `json:"last_stable"`
	End         *int64        `json:"end_offset"`
	Position    int64         `json:"position"`
	Lag         *int64        `json:"lag_records"` // readable records only: those of open transactions are not counted
	LagSeconds  *float64      `json:"lag_seconds"`
	RecordTime  *time.Time    `json:"record_time"`
	ReadRate    *float64      `json:"read_rate"`    // records per second
	ProduceRate *float64      `json:"produce_rate"` // records per second
	Verdict     job.Verdict   `json:"verdict"`
	Reason      reason.Reason `json:"reason"`
	Deadline    *time.Time    `json:"deadline"` // when retention may start to delete unread records

	Key job.Partition `json:"-"`
}

// Observation returns the sample s with its verdict in its stored form. It omits the broker's numbers if they do not
// belong to the partition that the version reads.
func (t *Track) Observation(s Sample, recordTime *time.Time, j Judgement) Observation {
	o := Observation{
		TopicID: s.TopicID.String(), Topic: s.Topic, Partition: s.ID, Position: s.Position, RecordTime: recordTime,
		Verdict: j.Verdict, Reason: j.Reason, Key: s.Partition,
	}
	if !s.Unknown.IsZero() || s.Fault.Kind == job.FaultRecreated || s.Fault.Kind == job.FaultMissing ||
		s.End < s.Position {
		return o
	}
	lag := s.Readable()
	o.LogStart, o.LastStable, o.End, o.Lag = &s.LogStart, &s.LastStable, &s.End, &lag
	if !s.replaying() {
		seconds := s.LagTime.Seconds()
		o.LagSeconds = &seconds
	}
	if read, produced, ok := t.Rates(); ok {
		o.ReadRate, o.ProduceRate = &read, &produced
	}
	return o
}

// Same reports whether two samples of a partition have the same stored form.
func (o Observation) Same(p Observation) bool {
	return o.Key == p.Key && o.Position == p.Position && o.Verdict == p.Verdict && o.Reason.Equal(p.Reason) &&
		same(o.LogStart, p.LogStart) && same(o.LastStable, p.LastStable) && same(o.End, p.End) && same(o.Lag, p.Lag) &&
		same(o.LagSeconds, p.LagSeconds) && same(o.ReadRate, p.ReadRate) && same(o.ProduceRate, p.ProduceRate) &&
		sameTime(o.RecordTime, p.RecordTime) && sameTime(o.Deadline, p.Deadline)
}

func same[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}

func sameTime(a, b *time.Time) bool {
	return a == b || a != nil && b != nil && a.Equal(*b)
}
