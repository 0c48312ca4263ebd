package readiness

import (
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
)

// Compose combines a position with the brokers' facts about its partition.
func Compose(phase job.Phase, paused bool, p job.Position, facts []job.PartitionFacts, why reason.Reason) Sample {
	s := Sample{
		Partition: p.Partition, Phase: phase, Paused: paused, Fault: p.Fault, Owned: p.Owner != "",
		Position: p.Next, Remaining: p.Remaining, FrozenEnd: p.FrozenEnd, Unknown: why,
	}
	if why.IsZero() {
		s.Unknown = reason.NoPartition()
	}
	for _, f := range facts {
		switch {
		case f.Topic != p.Topic || f.ID != p.ID:
		case f.Err != nil:
			s.Unknown = reason.BrokersSilent(f.Err)
		case f.TopicID != p.TopicID:
			s.Unknown = reason.Reason{}
			// the topic disappeared, and another one exists now
			if s.Fault.Kind == job.FaultNone || s.Fault.Kind == job.FaultMissing {
				s.Fault = job.Fault{Kind: job.FaultRecreated, Detail: fmt.Sprintf("its id was %s and is %s", p.TopicID, f.TopicID)}
			}
		case f.End < 0 || f.LastStable < 0 || f.Start < 0:
			s.Unknown = reason.NoOffsets()
		default:
			s.Unknown, s.LogStart, s.LastStable, s.End = reason.Reason{}, f.Start, f.LastStable, f.End
		}
	}
	return s
}

// Appeared returns the partitions of known topics for which a version has no position, from offset 0. If the log no
// longer holds offset 0, reading finds the gap.
func Appeared(positions []job.Position, facts []job.PartitionFacts) []job.Frozen {
	known := map[job.Partition]bool{}
	topics := map[job.TopicID]bool{}
	for _, p := range positions {
		known[p.Partition], topics[p.TopicID] = true, true
	}
	var out []job.Frozen
	for _, f := range facts {
		if f.Err == nil && topics[f.TopicID] && !known[f.Partition] && f.LastStable >= 0 {
			out = append(out, job.Frozen{
				Partition: f.Partition, Range: job.Range{From: 0, To: f.LastStable}, LeaderEpoch: f.LeaderEpoch,
			})
		}
	}
	return out
}

// Since returns the ranges between the frozen ends and the last stable offsets.
func Since(positions []job.Position, facts []job.PartitionFacts) []job.Frozen {
	ends := map[job.Partition]job.Position{}
	for _, p := range positions {
		ends[p.Partition] = p
	}
	var out []job.Frozen
	for _, f := range facts {
		p, ok := ends[f.Partition]
		if ok && f.Err == nil && f.LastStable > p.FrozenEnd {
			out = append(out, job.Frozen{
				Partition: f.Partition, Range: job.Range{From: p.FrozenEnd, To: f.LastStable}, LeaderEpoch: f.LeaderEpoch,
			})
		}
	}
	return out
}
