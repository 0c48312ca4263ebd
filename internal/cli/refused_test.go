package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
)

func TestRefusalsOfDeployAdoptAndDropHaveCodes(t *testing.T) {
	t.Parallel()
	f := newFlow(t)
	f.start("deploy", pageviews(), "--detach", "--quiet")
	f.ends(job.ExitOK)
	text, err := os.ReadFile(pageviews())
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.yaml")
	if err := os.WriteFile(other, []byte(strings.Replace(string(text), "count(*) AS views", "count(duration_ms) AS views", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	f.exec(`CREATE TABLE public.taken (id int PRIMARY KEY)`)
	for _, c := range []struct {
		args []string
		code reason.Code
	}{
		{[]string{"deploy", other, "--ignore-disk"}, reason.CodeRollingOut},
		{[]string{"deploy", other, "--ignore-disk", "--dry-run"}, reason.CodeRollingOut},
		{[]string{"drop", "pageviews", "--dry-run"}, reason.CodeRollingOut},
		{[]string{"adopt", "pageviews", "--view", "public.taken"}, reason.CodeJobExists},
	} {
		f.start(append(c.args, "-o", "json")...)
		f.ends(job.ExitConflict)
		var r struct{ Failure failureDoc }
		err := json.Unmarshal([]byte(f.out.String()), &r)
		if err != nil || r.Failure.Reason != c.code || r.Failure.ExitCode != job.ExitConflict || r.Failure.Message == "" || r.Failure.Next == "" {
			t.Errorf("%v: %v: %s", c.args, err, f.out)
		}
		if !strings.Contains(f.errs.String(), "error: "+r.Failure.Message) {
			t.Errorf("%v: stderr: %s", c.args, f.errs)
		}
	}
	f.start("plan", other, "-o", "json")
	f.ends(job.ExitConflict)
	if !strings.Contains(f.out.String(), `"cause_code": "rolling_out"`) {
		t.Errorf("plan: %s", f.out)
	}
}
