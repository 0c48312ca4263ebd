package reprocess

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/batchlayer/generation"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// diagrams are docs/phases.md.
func diagrams() string {
	return ledger.Diagram() + "\n## A batch generation\n\n" + generation.Diagram() +
		"\nGeneration 0 of a version is its replay: it begins live. Of a lambda version one generation is live and at most one is built.\n"
}

var update = flag.Bool("update", false, "write generated files")

func TestDiagramIsInSyncWithThePhaseTable(t *testing.T) {
	const file = "../docs/phases.md"
	if *update {
		if err := os.WriteFile(file, []byte(diagrams()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(diagrams(), string(got)); diff != "" {
		t.Errorf("docs/phases.md differs from the table (-want +got):\n%s", diff)
	}
}

func TestNothingFollowsAnEndedPhase(t *testing.T) {
	for _, p := range job.Phases() {
		if !p.Ended() {
			continue
		}
		for _, e := range ledger.Events() {
			if to, ok := ledger.Next(p, e); ok {
				t.Errorf("%s on %q goes to %s", p, e, to)
			}
		}
	}
}

func TestEveryPhaseIsReachedFromStagedAndReachesAnEnd(t *testing.T) {
	reach := func(start job.Phase) map[job.Phase]bool {
		seen := map[job.Phase]bool{start: true}
		for queue := []job.Phase{start}; len(queue) > 0; queue = queue[1:] {
			for _, e := range ledger.Events() {
				if to, ok := ledger.Next(queue[0], e); ok && !seen[to] {
					seen[to] = true
					queue = append(queue, to)
				}
			}
		}
		return seen
	}
	fromStaged := reach(job.Staged)
	for _, p := range job.Phases() {
		if !fromStaged[p] {
			t.Errorf("%s cannot be reached", p)
		}
		ends := false
		for q := range reach(p) {
			ends = ends || q.Ended()
		}
		if !ends {
			t.Errorf("%s never ends", p)
		}
	}
}

func TestAfterTheFlipThereIsNoAbort(t *testing.T) {
	for _, p := range []job.Phase{job.Live, job.Standby, job.Retiring} {
		if to, ok := ledger.Next(p, ledger.AbortAsked); ok {
			t.Errorf("abort takes %s to %s", p, to)
		}
	}
}
