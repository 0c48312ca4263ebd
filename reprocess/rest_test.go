package reprocess_test

import (
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

func TestEndOfAReplayIsNoticedBeforeTheNextTick(t *testing.T) {
	w := newWorld(t, 1000, 2000)
	w.config.Tick = time.Minute
	w.setIdle(1, true)
	w.run(1, nil)
	staged := w.stage("aaa")
	w.await("the first version is replaying", func() bool {
		d, err := w.store.Deployment(t.Context(), staged.Deployment)
		return err == nil && d.Phase == job.Replaying
	})
	began := time.Now()
	w.setIdle(1, false)
	w.finish(staged.Deployment, "", job.ExitOK)
	if took := time.Since(began); took >= w.config.Tick {
		t.Errorf("from replaying to live in %s: the controller slept a whole tick of %s", took, w.config.Tick)
	}
	w.exact()
}
