package cli

import (
	"encoding/json"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
)

// TestAListOfRetiredVersionsHasItsFailures plays an agent that refuses the first version and retires the second.
func TestAListOfRetiredVersionsHasItsFailures(t *testing.T) {
	t.Parallel()
	f := newFlow(t)
	f.start("deploy", pageviews(), "--detach", "--quiet")
	f.ends(job.ExitOK)
	f.exec(`INSERT INTO kappactl.version (job, number, hash, spec, layout, file, dialect, engine, phase, verdict, reason, created_by)
		SELECT job, 2, 'other', spec, layout, file, dialect, engine, phase, verdict, reason, created_by FROM kappactl.version`)
	f.exec(`UPDATE kappactl.version SET phase = 'standby', standby_until = '2026-01-01'`)
	f.start("retire", "--all-expired", "--yes", "-o", "json")
	for _, answer := range []string{
		`exit_code = 6, answer = '{"code": "refused", "args": {"cause": "pageviews/v1 is pinned"}}'`,
		`exit_code = 0, answer = '{"code": "refused", "args": {"cause": "retired"}}'`,
	} {
		f.eventually(`UPDATE kappactl.request SET answered_at = clock_timestamp(), ` + answer + ` WHERE answered_at IS NULL`)
	}
	f.ends(job.ExitConflict)
	var got []struct {
		Version  string
		ExitCode job.ExitCode `json:"exit_code"`
		Failure  *failureDoc
	}
	if err := json.Unmarshal([]byte(f.out.String()), &got); err != nil || len(got) != 2 || got[0].Failure == nil || got[1].Failure != nil {
		t.Fatalf("%v\n%s%s", err, f.out, f.errs)
	}
	if first := got[0].Failure; first.Code != "conflict" || first.Message != "pageviews/v1 is pinned" || got[0].ExitCode != job.ExitConflict {
		t.Errorf("%s", f.out)
	}
}
