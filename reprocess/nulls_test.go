package reprocess_test

import (
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/plan"
)

func TestAColumnThatIsNullThroughoutAndWasNotInLiveIsWarnedOf(t *testing.T) {
	w := newWorld(t, 100)
	w.run(1, nil)
	w.finish(w.stage("aaa").Deployment, "live", job.ExitOK)
	d := w.finish(w.stage("bbb", func(in *plan.Staging) { in.Layout.View[0].Finish = `NULL::bigint` }).Deployment, "verified", job.ExitOK)
	w.await("the message", func() bool { d = w.deployment(d.ID); return d.Message != "" })
	if !strings.Contains(d.Message, "warning: NULL in every row, while v1") || !strings.Contains(d.Message, ": n;") {
		t.Errorf("message %q", d.Message)
	}
	w.finish(w.stage("ccc", func(in *plan.Staging) { in.Again = true }).Deployment, "verified", job.ExitOK)
	if got := w.text(`SELECT count(*)::text FROM kappactl.event WHERE kind = 'warning' AND number = 3`); got != "0" {
		t.Errorf("%s warnings of a version as live is", got)
	}
}
