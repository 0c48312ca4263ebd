package readiness

import (
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
)

// Sample is one partition of a version at one moment. Positions are read first, the broker's facts after them.
type Sample struct {
	job.Partition
	Phase     job.Phase
	Paused    bool
	Unknown   reason.Reason // why the broker's facts could not be read; zero if they were
	Fault     job.Fault
	Owned     bool // a worker holds the partition, or segments of it in a replay
	Position  int64
	Remaining int64 // unread offsets below FrozenEnd, in a replay
	FrozenEnd int64

	LogStart, LastStable, End int64

	// Values derived from earlier samples; Track.Observe sets them.
	LagTime time.Duration // age of the oldest end offset that the position has not reached
	AtLeast bool          // LagTime counts from the first sample: the records may be older
	Unowned time.Duration // since a worker last held it, or since the first sample in this phase
	Idle    time.Duration // since it last made progress
	Held    time.Duration // how long the last stable offset has been below the end
	Before  *int64        // readable records convergingWithin ago; nil if it was not sampled for that long

	Queued reason.Reason // why the replay has not started; zero if it has
	Live   *int64        // live's position on this partition; nil if live does not read it or is down
}

func (s Sample) replaying() bool { return s.Phase == job.Replaying || s.Phase == job.Building }

// Unread returns the number of offsets that are not in the table yet.
func (s Sample) Unread() int64 {
	if s.replaying() {
		return s.Remaining + max(0, s.End-s.FrozenEnd)
	}
	return max(0, s.End-s.Position)
}

// Readable returns Unread without the records of open transactions.
func (s Sample) Readable() int64 { return max(0, s.Unread()-max(0, s.End-s.LastStable)) }
