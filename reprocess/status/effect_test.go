package status

import (
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// TestRetiringAnAdoptedTableIsNotSaidToDropIt: neither by --dry-run nor before the terminal interface asks.
func TestRetiringAnAdoptedTableIsNotSaidToDropIt(t *testing.T) {
	for ref, drops := range map[job.Ref]bool{{Job: "a", Number: 0}: false, {Job: "a", Number: 1}: true} {
		e := EffectOf(ledger.Retire, ref, Job{Job: "a"})
		for _, text := range []string{e.Would, e.Does} {
			if strings.Contains(text, "drop") != drops || strings.Contains(text, "stays") == drops {
				t.Errorf("%s: %s", ref, text)
			}
		}
	}
}

func TestActsThatDropTablesNameAllOfAVersionOfModeLambda(t *testing.T) {
	ref := job.Ref{Job: "a", Number: 2}
	j := Job{Job: "a", Versions: []Version{versionRow{Job: "a", Number: 2, Lambda: true}.status(nil, time.Time{})}}
	for _, verb := range []ledger.Verb{ledger.Retire, ledger.Abort} {
		e := EffectOf(verb, ref, j)
		for _, text := range []string{e.Would, e.Does} {
			if !strings.Contains(text, "tables a__v2, a__v2_batch, a__v2_gen") {
				t.Errorf("%s: %s", verb, text)
			}
		}
	}
}

func TestEveryActOnAVersionHasAnEffect(t *testing.T) {
	live := "v1"
	j := Job{Job: "a", View: "public.a", Live: &live}
	for _, verb := range []ledger.Verb{
		ledger.Promote, ledger.Rollback, ledger.Abort, ledger.Pause, ledger.Resume, ledger.Retire,
	} {
		e := EffectOf(verb, job.Ref{Job: "a", Number: 2}, j)
		if e.Would == "" || e.Does == "" {
			t.Errorf("%s: %+v", verb, e)
		}
		flips := verb == ledger.Promote || verb == ledger.Rollback
		if flips != strings.Contains(e.Would, "public.a read v2 in place of v1") ||
			flips != strings.Contains(e.Does, "public.a reads v2 in place of v1") {
			t.Errorf("%s: %+v", verb, e)
		}
	}
}
