package abtest

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/internal/retry"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// needsWatch selects the experiments that have not ended.
const needsWatch = `r.ended_at IS NULL`

// watch is one experiment under one agent. The goroutine of Watch owns it.
type watch struct {
	r         *Runner
	id, claim int64
	since     map[string]time.Time // when each arm that is in trouble began to be
	looked    time.Time            // when the arms were last compared
}

// Watch pauses an experiment whose arm is in trouble: its readers go back to the control. It returns when the
// experiment has ended, the claim is lost or ctx ends.
func (r *Runner) Watch(ctx context.Context, id, claim int64) error {
	w := &watch{r: r, id: id, claim: claim, since: map[string]time.Time{}}
	for {
		over, err := w.look(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if over || err != nil {
			return err
		}
		if retry.Sleep(ctx, r.config.Tick) != nil {
			return nil
		}
	}
}

// held reads the experiment under its claim, nil when it has ended or another agent holds it.
func (w *watch) held(ctx context.Context, db pg.DB) (*row, error) {
	rows, err := pg.Structs[row](ctx, db,
		`SELECT `+rowColumns+`WHERE e.id = @id AND e.claim = @claim AND e.ended_at IS NULL`,
		pgx.NamedArgs{"id": w.id, "claim": w.claim})
	if err != nil {
		return nil, fmt.Errorf("read experiment %d: %w", w.id, err)
	}
	if len(rows) == 0 {
		return nil, nil //nolint:nilnil // no experiment is not an error
	}
	return &rows[0], nil
}

// look judges every arm but the control, to which its readers would go back.
func (w *watch) look(ctx context.Context) (over bool, err error) {
	e, err := w.held(ctx, w.r.Pool)
	if err != nil || e == nil {
		return true, err
	}
	now := w.r.Now()
	if e.Settings.Watched() && now.Sub(w.looked) >= e.Settings.Look() {
		w.looked = now
		switch err := w.compare(ctx, e); {
		case pg.Retryable(err): // the arms are watched meanwhile
			w.r.Log.Info("a look at an experiment is tried again", "job", e.Job, "error", err)
			w.looked = time.Time{}
		case err != nil:
			return false, err
		}
	}
	if e.State != Running {
		clear(w.since)
		return false, nil
	}
	for _, arm := range e.Arms[1:] {
		why, grave, err := trouble(ctx, w.r.Pool, job.Name(e.Job), arm)
		if err != nil {
			return false, err
		}
		if why.IsZero() {
			delete(w.since, arm)
			continue
		}
		if _, known := w.since[arm]; !known {
			w.since[arm] = now
		}
		if grave || now.Sub(w.since[arm]) >= w.r.config.Patience {
			return false, w.pause(ctx, why)
		}
	}
	return false, nil
}

// trouble is why readers should not read an arm, zero when they may; grave trouble is not waited for.
func trouble(ctx context.Context, db pg.DB, name job.Name, arm string) (why reason.Reason, grave bool, err error) {
	n, err := job.ParseNumber(arm)
	if err != nil {
		return reason.Reason{}, false, err
	}
	ref := job.Ref{Job: name, Number: n}
	st, err := ledger.ReadState(ctx, db, ref)
	if err != nil {
		return reason.Reason{}, false, err
	}
	v, err := ledger.FreshVerdict(ctx, db, ref)
	switch {
	case err != nil:
		return reason.Reason{}, false, err
	case st.PausedAt != nil:
		return reason.VersionPaused(ref), true, nil
	case st.Phase != job.CatchingUp && st.Phase != job.CaughtUp && st.Phase != job.Verified && st.Phase != job.Live &&
		st.Phase != job.Standby:
		return reason.InPhase(ref, st.Phase), true, nil
	case v.Verdict == job.Unhealthy:
		return reason.Unhealthy(ref, v.Reason), true, nil
	case v.Verdict == job.Ready || v.Verdict == job.Holding:
		return reason.Reason{}, false, nil
	}
	return reason.NotReady(ref, v.Verdict, v.Reason), false, nil
}

// pause sends every reader to the control, unless the experiment has moved meanwhile.
func (w *watch) pause(ctx context.Context, cause reason.Reason) error {
	const by = "kappactl"
	return w.r.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := ledger.LockTimeout(ctx, tx, ledger.SlowLock); err != nil {
			return err
		}
		e, err := w.held(ctx, tx)
		if err != nil || e == nil {
			return err
		}
		if _, err := ledger.LockJob(ctx, tx, job.Name(e.Job)); err != nil {
			return err
		}
		if e, err = w.held(ctx, tx); err != nil || e == nil || e.State != Running {
			return err
		}
		why := reason.ABTrouble(job.Name(e.Job), e.Run, e.Arms[0], cause)
		if err := setState(ctx, tx, e, Paused, why); err != nil {
			return err
		}
		if err := decide(ctx, tx, e, Stopped, why, by, nil); err != nil {
			return err
		}
		w.r.Log.Warn(why.Text(), "job", e.Job)
		return ledger.AddEvent(ctx, tx, ledger.Entry{
			Job: e.Job, Whole: true, Kind: ledger.EventABPaused, Message: why,
			By: by,
		})
	})
}
