package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

// scheduledJob is the job clicks with a schedule of batch runs.
func (w *world) scheduledJob(mode, topic, expression string) string {
	w.t.Helper()
	return w.file(mode+".yaml", fmt.Sprintf("mode: %s\n", mode)+fmt.Sprintf(clicksJob, topic, 0)+
		fmt.Sprintf("archive: {location: \"file://%s/archive\"}\nbatch: {schedule: %q}\n", w.dir, expression))
}

// scheduled is a schedule as schedule list and status print it.
type scheduled struct {
	State      string
	Expression string
	NextAt     *time.Time `json:"next_at"`
	Last       *struct {
		State   string
		Request *int64
	}
}

// schedule waits until the schedule of the job is as it should be, and returns it.
func (w *world) schedule(what string, is func(scheduled) bool) (s scheduled) {
	w.t.Helper()
	w.until(what, func() bool {
		var found []scheduled
		w.into(&found, "schedule", "list", "clicks")
		s = found[0]
		return is(s)
	})
	return s
}

// TestAScheduleBeginsRunsOfALiveLambdaVersion: agents begin runs by the schedule of the job file that is in force,
// which a deploy changes in place.
func TestAScheduleBeginsRunsOfALiveLambdaVersion(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Fake(t)
	w, topic := newWorld(t, brokers), clicksTopic(t, brokers, 1000)
	w.serve()
	w.serve()
	if o := w.code(2, "deploy", w.scheduledJob("lambda", topic, "0 0 30 2 *")); !strings.Contains(o.stderr, "batch.schedule: no year has such a day") {
		t.Errorf("a schedule that never comes: %s", o.stderr)
	}
	w.ok("deploy", w.scheduledJob("lambda", topic, "@every 1s"))
	w.schedule("a run begins", func(s scheduled) bool { return s.Last != nil && s.Last.Request != nil })
	if out := w.ok("deploy", w.scheduledJob("lambda", topic, "0 0 1 1 *")); !strings.Contains(out, "batch") {
		t.Errorf("the deploy does not name what it applies in place: %s", out)
	}
	s := w.schedule("the changed schedule is followed", func(s scheduled) bool { return s.Expression == "0 0 1 1 *" && s.State != "starting" })
	if s.NextAt == nil || s.NextAt.UTC().Format("01-02 15:04") != "01-01 00:00" {
		t.Errorf("the next run is due at %v", s.NextAt)
	}
	w.ok("schedule", "pause", "clicks")
	var shown struct{ Schedule scheduled }
	if w.into(&shown, "status", "clicks"); shown.Schedule.State != "paused" {
		t.Errorf("status shows %+v", shown.Schedule)
	}
	w.ok("schedule", "resume", "clicks")
	w.ok("deploy", w.scheduledJob("kappa", topic, "0 0 1 1 *"), "--promote", "auto")
	w.schedule("no run begins of a kappa version", func(s scheduled) bool { return s.State == "no_lambda" && s.NextAt == nil })
	w.code(6, "schedule", "run-now", "clicks")
	w.ok("drop", "clicks", "--yes")
	if left := w.sum(`SELECT (SELECT count(*) FROM kappactl.schedule) + (SELECT count(*) FROM kappactl.tick)`); left != 0 {
		t.Errorf("%d rows of the schedule are left", left)
	}
}
