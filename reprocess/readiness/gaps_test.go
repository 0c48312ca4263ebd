package readiness

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
)

func TestAGapOfTheCandidateIsALossWhereLiveReadItsOffsets(t *testing.T) {
	a, b := part("a", 1, 0), part("b", 2, 0)
	at := func(p job.Partition, from, to int64) job.PartitionRange {
		return job.PartitionRange{Partition: p, Range: job.Range{From: from, To: to}}
	}
	lost := func(p job.Partition, from, to int64) Loss {
		return Loss{Live: Start{p, from}, Candidate: to, Kind: LossGap}
	}
	list := func(r ...job.PartitionRange) []job.PartitionRange { return r }
	for name, c := range map[string]struct {
		gaps Gaps
		kept map[job.Partition]int64
		want []Loss
	}{
		"no gap":                   {Gaps{Read: list(at(a, 0, 100))}, nil, nil},
		"read by live":             {Gaps{Read: list(at(a, 0, 100)), Candidate: list(at(a, 0, 60))}, nil, []Loss{lost(a, 0, 60)}},
		"before live begins":       {Gaps{Read: list(at(a, 60, 100)), Candidate: list(at(a, 0, 60))}, nil, nil},
		"partly before":            {Gaps{Read: list(at(a, 50, 100)), Candidate: list(at(a, 0, 60))}, nil, []Loss{lost(a, 50, 60)}},
		"live is not there yet":    {Gaps{Read: list(at(a, 0, 100)), Candidate: list(at(a, 90, 120))}, nil, []Loss{lost(a, 90, 100)}},
		"of another partition":     {Gaps{Read: list(at(b, 0, 100)), Candidate: list(at(a, 0, 60))}, nil, nil},
		"of another topic id":      {Gaps{Read: list(at(part("a", 9, 0), 0, 100)), Candidate: list(at(a, 0, 60))}, nil, nil},
		"live has the same gap":    {Gaps{Read: list(at(a, 0, 100)), Live: list(at(a, 0, 60)), Candidate: list(at(a, 0, 60))}, nil, nil},
		"live has a gap in it":     {Gaps{Read: list(at(a, 0, 100)), Live: list(at(a, 20, 30), at(b, 0, 99)), Candidate: list(at(a, 0, 60))}, nil, []Loss{lost(a, 0, 20), lost(a, 30, 60)}},
		"all of it has expired":    {Gaps{Read: list(at(a, 0, 100)), Candidate: list(at(a, 0, 60))}, map[job.Partition]int64{a: 60}, nil},
		"a part of it has expired": {Gaps{Read: list(at(a, 0, 100)), Candidate: list(at(a, 0, 60))}, map[job.Partition]int64{a: 40}, []Loss{lost(a, 40, 60)}},
	} {
		if diff := cmp.Diff(c.want, c.gaps.Losses(c.kept)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
