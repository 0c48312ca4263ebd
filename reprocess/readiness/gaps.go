package readiness

import (
	"slices"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
)

// Gaps holds the accepted gaps of a live version and of a candidate, and what live has read.
type Gaps struct {
	Read            []job.PartitionRange // by live
	Live, Candidate []job.PartitionRange
}

// Losses returns the parts of the candidate's gaps that live has read and that are not gaps of live, in a stable order.
// kept is that of Coverage: earlier offsets have expired.
func (g Gaps) Losses(kept map[job.Partition]int64) []Loss {
	var losses []Loss
	for _, gap := range g.Candidate {
		for _, read := range g.Read {
			if read.Partition != gap.Partition {
				continue
			}
			lost := job.Range{From: max(gap.From, read.From, kept[gap.Partition]), To: min(gap.To, read.To)}
			for _, r := range without(lost, g.Live, gap.Partition) {
				losses = append(losses, Loss{Live: Start{gap.Partition, r.From}, Candidate: r.To, Kind: LossGap})
			}
		}
	}
	return sorted(losses)
}

// without returns the parts of a range outside the gaps of its partition, in order.
func without(r job.Range, gaps []job.PartitionRange, p job.Partition) []job.Range {
	left := []job.Range{r}
	for _, gap := range gaps {
		if gap.Partition != p {
			continue
		}
		var next []job.Range
		for _, r := range left {
			next = append(next, job.Range{From: r.From, To: min(r.To, gap.From)}, job.Range{From: max(r.From, gap.To), To: r.To})
		}
		left = next
	}
	return slices.DeleteFunc(left, func(r job.Range) bool { return r.Len() == 0 })
}

// Lines returns one reason per loss of a flip from live to the candidate.
func Lines(losses []Loss, live, candidate job.Ref) []reason.Reason {
	out := make([]reason.Reason, len(losses))
	for i, l := range losses {
		out[i] = l.reason(live.Number, candidate.Number)
	}
	return out
}
