package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess/status"
)

func TestPlanSaysWhichChecksRunWhenAndAgainstWhat(t *testing.T) {
	none, live := 0.0, "v1"
	spec := &job.Spec{Checks: []job.Check{
		{Name: "not_empty", SQL: "SELECT true", When: job.CheckBefore},
		{Name: "close", Diff: &job.DiffLimit{MaxChanged: 0.01, MaxMissing: &none}, When: job.CheckBoth, Every: time.Minute},
		{Name: "later", SQL: "SELECT true", When: job.CheckAfter, Every: 90 * time.Second},
	}}
	words := func(live *string) (out []string) {
		for _, c := range planChecks(spec, live) {
			out = append(out, c.words())
		}
		return out
	}
	want := []string{
		"not_empty: before the flip",
		"close: before and after the flip, every 1m: at most 1% of the keys differ, 0% are missing against v1",
		"later: after the flip, every 1m30s",
	}
	if diff := cmp.Diff(want, words(&live)); diff != "" {
		t.Error(diff)
	}
	if got := words(nil)[1]; !strings.HasSuffix(got, "no version is live yet to compare with") {
		t.Error(got)
	}
}

func TestStatusShowsWhatChecksSaidLast(t *testing.T) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	jobs := []status.Job{{Job: "a", Versions: []status.Version{
		{Version: "v2", Phase: job.Live, Checks: []status.Check{
			{Name: "close", When: "both", Stage: "after", Outcome: "no answer", Detail: "v1 is paused", At: &at, Seconds: 0.0123},
			{Name: "sane", When: "before"},
		}},
		{Version: "v1", Phase: job.Standby, Checks: []status.Check{{Name: "old", Outcome: "pass"}}},
	}}}
	var b strings.Builder
	if err := printChecks(&b, render.Style{}, jobs); err != nil {
		t.Fatal(err)
	}
	want := "\nversion\tcheck\twhen\toutcome\tat\ttook\tdetail\nv2\tclose\tafter\tno answer\t2026-01-01T12:00:00Z\t0.0123s\tv1 is paused\nv2\tsane\tbefore\tnot run yet\t-\t-\t-\n"
	if b.String() != want {
		t.Errorf("got %q", b.String())
	}
}
