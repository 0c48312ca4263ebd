package job_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
)

func TestADiffCheckSaysHowMuchMayDifferAndHow(t *testing.T) {
	half := 0.005
	zero := 0.0
	got := parse(t, replace(t, plain, "serve:", `checks:
  - name: close
    when: both
    diff: {max_changed: 1%, max_missing: 0%, max_extra: 0.5%, ignore: [a, b], where: "hour < now()", tolerance: 0.1%}
  - {name: per column, diff: {max_changed: 0, tolerance: {avg_ms: 2%, total: 0.5%}}}
serve:`)).Checks
	want := []job.DiffLimit{
		{MaxChanged: 0.01, MaxMissing: &zero, MaxExtra: &half, DiffHow: job.DiffHow{Ignore: []string{"a", "b"}, Where: "hour < now()", Tolerance: 0.001}},
		{DiffHow: job.DiffHow{Tolerances: map[string]float64{"avg_ms": 0.02, "total": 0.005}}},
	}
	if diff := cmp.Diff(want, []job.DiffLimit{*got[0].Diff, *got[1].Diff}); diff != "" {
		t.Error(diff)
	}
	if !got[0].Runs(job.CheckBefore) || !got[0].Runs(job.CheckAfter) || !got[1].Runs(job.CheckBefore) || got[1].Runs(job.CheckAfter) {
		t.Errorf("when: %q, %q", got[0].When, got[1].When)
	}
}

func TestAColumnThatADiffCheckCannotCompareIsRefusedAtItsPlace(t *testing.T) {
	s := parse(t, replace(t, plain, "serve:", `checks:
  - {name: close, diff: {max_changed: 1%, ignore: [url, view], tolerance: {vews: 1%, ok: 1%}}}
serve:`))
	err := s.CheckColumns(job.Layout{View: []job.ViewColumn{{Name: "url", Key: true}, {Name: "views"}, {Name: "ok"}}})
	if err == nil {
		t.Fatal("taken")
	}
	for _, want := range []string{`checks[0].diff.ignore[0]: "url" is a key`, `checks[0].diff.ignore[1]: the view has no column "view"`, `did you mean views?`, `tolerance.vews: the view has no column "vews"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
}

func TestACheckIsOneQuery(t *testing.T) {
	for sql, want := range map[string]bool{
		"SELECT true": true, "-- why\n  with a as (select 1) select true from a": true, "/* /* */ */ ((VALUES (true)))": true, "TABLE t": true,
		"COMMIT": false, "DELETE FROM a RETURNING true": false, "": false, "-- nothing": false, "selects": false, "DO $$ BEGIN END $$": false, "CALL p()": false,
	} {
		if got := job.ReadsOnly(sql) == nil; got != want {
			t.Errorf("%q is a query: %t", sql, got)
		}
	}
	for sql, want := range map[string]string{
		"SELECT 1": "SELECT 1", "SELECT 1 ; ; -- why; not\n": "SELECT 1", "SELECT ';' /* ; */;": "SELECT ';'", "SELECT $$;$$ -- ;": "SELECT $$;$$", ";": "", "": "",
	} {
		if got := job.Unended(sql); got != want {
			t.Errorf("%q unended: %q", sql, got)
		}
	}
	for sql, want := range map[string]bool{`SELECT n FROM "live"`: true, "SELECT n FROM LIVE": true, "SELECT alive FROM olive": false, "SELECT 1 -- live": false} {
		if got := job.Names(sql, "live"); got != want {
			t.Errorf("%q names live: %t", sql, got)
		}
	}
}
