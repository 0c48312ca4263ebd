package reprocess

import (
	"context"
	"errors"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/retry"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/readiness"
)

const (
	failingAgain = 10 * time.Second // the longest pause between two tries of a step that fails
	logAgain     = time.Minute
)

// failed notes a step that failed with err and waits before it is tried again, longer after each try. Meanwhile the
// version is sampling.Sample, so that its verdict says what fails. It reports false when ctx ended or the deployment is
// no longer this controller's.
func (w *watch) failed(ctx context.Context, err error) bool {
	now := w.c.Now()
	w.samples.Failing.Failed(now, w.phase, pg.Cause(err))
	if now.Sub(w.logged) >= logAgain {
		w.logged = now
		w.c.Log.Warn("a step fails and is tried again", "job", w.job, "version", job.Number(w.number).String(), "deployment",
			w.id, "error", err)
	}
	until := now.Add(retry.Backoff(w.samples.Failing.Tries, w.c.config.Tick/2, failingAgain))
	for {
		changed, err := w.show(ctx)
		switch left := until.Sub(w.c.Now()); {
		case errors.Is(err, ledger.ErrGone), ctx.Err() != nil:
			return false
		case changed || left <= 0:
			return true
		case retry.Sleep(ctx, min(left, w.c.config.Tick)) != nil:
			return false
		}
	}
}

// show writes the verdict on a version a step of which fails. changed reports that the version has moved on since that
// step.
func (w *watch) show(ctx context.Context) (changed bool, err error) {
	st, err := ledger.LoadState(ctx, w.c.Pool, w.id, w.claim)
	if err != nil {
		return false, err
	}
	if st.EndedAt != nil || st.Phase != w.phase || (st.PausedAt != nil) != w.paused {
		return true, nil
	}
	if ledger.Candidate(st.Phase) || st.Phase.Consumes() {
		s, err := w.samples.Sample(ctx, st)
		if err == nil && ledger.Candidate(st.Phase) {
			_, err = w.unhealthy(ctx, st, s)
		}
		if err == nil {
			return false, nil
		}
	}
	j := w.samples.WithTrouble(st, readiness.Judgement{Verdict: st.Verdict, Reason: st.Reason}, nil)
	return false, w.samples.Note(ctx, st, j, st.StaleSince != nil)
}
