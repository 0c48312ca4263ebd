package reprocess_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

func TestAFlipBackUnderWayDoesNotMoveReadersOfALaterVersion(t *testing.T) {
	w := newWorld(t, 100)
	w.config.PromoteDeadline, w.config.RetryEvery = time.Minute, time.Second
	var held atomic.Int32
	w.run(1, func(_ int, point string) {
		if point == reprocess.FaultPromoteHeld {
			held.Add(1)
		}
	})
	w.finish(w.stage("aaa", auto).Deployment, "live", job.ExitOK)
	s := w.stage("bbb", auto, withChecks(small))
	w.finish(s.Deployment, "live", job.ExitOK)
	w.finish(w.stage("ccc").Deployment, "verified", job.ExitOK)
	end := w.report()
	before := held.Load()
	w.brokers.produce(0, 100)
	w.await("a flip back that the reader keeps waiting", func() bool { return held.Load() > before })
	w.must(3, ledger.Promote, ledger.Args{IgnoreSnapshots: true})
	end()
	w.sql(`UPDATE kappactl.version SET standby_until = clock_timestamp() WHERE number = 2`)
	w.await("v2's retirement, which comes after its flip back", func() bool { return w.version(2).Phase == job.Retired })
	if w.live() != "v3" {
		t.Errorf("v2's check moved readers of v3: live is %s", w.live())
	}
}
