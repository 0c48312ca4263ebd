package reprocess

import (
	"testing"

	"github.com/kappactl/kappactl/internal/job"
)

func TestDeadLettersAreJudgedByTheLimitAndBesideLive(t *testing.T) {
	for _, c := range []struct {
		name  string
		phase job.Phase
		n     deadCount
		live  *deadCount
		sick  bool
	}{
		{"few records say nothing", job.CatchingUp, deadCount{records: 999, dead: 999}, nil, false},
		{"at the limit", job.CatchingUp, deadCount{records: 100_000, dead: 1000}, nil, false},
		{"over the limit", job.CatchingUp, deadCount{records: 100_000, dead: 1001}, nil, true},
		{"over the limit, as live is", job.CatchingUp, deadCount{records: 100_000, dead: 1001}, &deadCount{records: 100_000, dead: 1001}, true},
		{"within the limit, live has none", job.Replaying, deadCount{records: 100_000, dead: 150}, &deadCount{records: 100_000}, true},
		{"within the limit, as live", job.Verified, deadCount{records: 100_000, dead: 150}, &deadCount{records: 100_000, dead: 100}, false},
		{"a handful more than live", job.Verified, deadCount{records: 5000, dead: 9}, &deadCount{records: 100_000}, false},
		{"live has seen too little", job.Verified, deadCount{records: 100_000, dead: 150}, &deadCount{records: 10}, false},
		{"live itself is not compared", job.Live, deadCount{records: 100_000, dead: 150}, &deadCount{records: 100_000}, false},
	} {
		st := &state{Job: "j", Phase: c.phase}
		st.spec.Source.OnError.Max = 0.01
		if got := tooManyDead(st, c.n, c.live); (got != "") != c.sick {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}
