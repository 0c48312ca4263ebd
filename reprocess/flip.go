package reprocess

import (
	"context"
	"encoding/json"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/readiness"
)

// slowFlip bounds how long the transaction of a flip may stand still: once it has the view's lock, readers wait for it.
const slowFlip = 3 * time.Second

// flip is one try to make readers see another version: the steps that promote and rollback share.
type flip struct {
	c     *Controller
	actor ledger.Actor
	st    *ledger.State // of the version that becomes live
	from  *job.Ref
	args  ledger.Args
	back  bool // a rollback
	began time.Time

	by      string // holder of the barrier; empty when there is none
	line    ledger.Boundary
	ignored []ledger.Blocker // readers with an older snapshot that were not waited for
	behind  reason.Reason    // how far a version is that readers go back to although it is behind; zero when it is not
	outcome reason.Reason    // what the flip did
}

// stopBoth brings both versions to the same offsets, unless there is no barrier. The caller releases it.
func (f *flip) stopBoth(ctx context.Context) (err error) {
	if f.by != "" {
		f.line, err = f.c.barrier(ctx, f.by, f.st.Ref(), *f.from)
	}
	return err
}

// release ends the barrier, also when ctx is over; from here on there is none.
func (f *flip) release(ctx context.Context) {
	if f.by != "" {
		f.c.release(ctx, f.by)
		f.by = ""
	}
}

// commit runs the transaction of a flip.
func (f *flip) commit(ctx context.Context, in func(context.Context, *pg.Tx) error) error {
	err := f.c.Pool.Try(ctx, f.args.DryRun, func(tx *pg.Tx) error { return in(ctx, tx) })
	if err != nil {
		return f.c.lockTrouble(ctx, "view", f.st.View(), err)
	}
	f.c.hit(FaultPromoteFlipped)
	f.c.log(f.st).Info(f.outcome.Text(), "by", f.actor.By)
	return nil
}

// begin locks the job, the actor's row and both versions, and reads what was applied in place since the state was read.
func (f *flip) begin(ctx context.Context, tx *pg.Tx) (ledger.JobRow, error) {
	if err := ledger.IdleTimeout(ctx, tx, slowFlip); err != nil {
		return ledger.JobRow{}, err
	}
	j, err := f.actor.Begin(ctx, tx, job.Name(f.st.Job))
	if err != nil {
		return j, err
	}
	other := f.st.Ref()
	if f.from != nil {
		other = *f.from
	}
	if err := ledger.LockVersions(ctx, tx, f.st.Ref(), other); err != nil {
		return j, err
	}
	if f.c.Experiments != nil {
		if err := f.c.Experiments.EndByFlip(ctx, tx, f.st.Ref(), f.back, f.actor.By); err != nil {
			return j, err
		}
	}
	spec, layout, err := ledger.ReadSpec(ctx, tx, f.st.Ref())
	if err != nil {
		return j, err
	}
	f.st.Spec, f.st.Layout = *spec, layout
	return j, nil
}

// conditions are judged under the locks: no other flip came first, both versions are at the barrier, the candidate is
// ready, and no reader has an older snapshot open.
func (f *flip) conditions(ctx context.Context, tx *pg.Tx, j ledger.JobRow) error {
	if !sameNumber(j.Live, f.from) {
		return liveChanged(f.st, j.Live)
	}
	if f.by != "" {
		there, err := f.c.Speed.Reached(ctx, tx, f.by, true)
		if err != nil {
			return err
		}
		if !there {
			return &tryAgain{why: reason.BarrierEnded()}
		}
	}
	if err := f.ready(ctx, tx); err != nil {
		return err
	}
	if f.by == "" {
		return nil
	}
	older, all, err := ledger.OlderSnapshots(ctx, tx, f.line)
	if err != nil || len(older) == 0 {
		return err
	}
	if f.args.IgnoreSnapshots {
		f.ignored = older
		return nil
	}
	return &tryAgain{why: reason.OlderSnapshots(ledger.BlockerTexts(older), all)}
}

// ready reports by an error that the version may not be shown, by its samples.
func (f *flip) ready(ctx context.Context, db pg.DB) error {
	if f.back && (f.args.Stale || f.by == "") {
		return nil // asked for, or away from a version that is down
	}
	now, err := ledger.ReadState(ctx, db, f.st.Ref())
	if err != nil {
		return err
	}
	if now.Phase != f.st.Phase {
		return &tryAgain{why: reason.PhaseChanged(f.st.Ref(), f.st.Phase, now.Phase), notReady: true}
	}
	v, err := ledger.FreshVerdict(ctx, db, f.st.Ref())
	if err != nil {
		return err
	}
	switch {
	case v.Verdict == job.Ready:
		return nil
	case v.Verdict == job.Unhealthy:
		return unhealthyRefusal(f.st, v)
	case (f.back || f.st.Phase == job.Standby) && f.by != "" &&
		(v.Verdict == job.Holding || v.Verdict == job.Unknown || v.Verdict == job.Starting):
		return nil // readers saw it before, and the barrier has just shown that it reads
	}
	return notReady(f.st.Ref(), v)
}

// notReady is a tryAgain for a version whose verdict may become ready.
func notReady(ref job.Ref, v readiness.Judgement) error {
	return &tryAgain{why: reason.NotReady(ref, v.Verdict, v.Reason), notReady: true}
}

func unhealthyRefusal(st *ledger.State, v readiness.Judgement) *job.Refusal {
	code := job.ExitUnhealthy
	if st.ExitCode != nil && *st.ExitCode == int(job.ExitGap) {
		code = job.ExitGap
	}
	return ledger.RefuseFor(code, "kappactl status "+st.Job, reason.Unhealthy(st.Ref(), v.Reason))
}

// movePhases moves both versions to the phases that they have after the flip.
func (f *flip) movePhases(ctx context.Context, tx *pg.Tx) error {
	if err := stepVersion(ctx, tx, f.st.Ref(), f.st.Phase, ledger.Flipped); err != nil {
		return err
	}
	if f.from != nil {
		if err := stepVersion(ctx, tx, *f.from, job.Live, ledger.Replaced); err != nil {
			return err
		}
	}
	return ledger.NoteLive(ctx, tx, f.st.Ref(), f.from, f.st.Spec.KeepOld, f.back)
}

// told is the flip as its outcome tells it.
func (f *flip) told() reason.Flip {
	told := reason.Flip{To: f.st.Ref(), Keep: f.st.Spec.KeepOld, Behind: f.behind, Readers: ledger.BlockerTexts(f.ignored)}
	if f.from != nil {
		told.Standby = &f.from.Number
	}
	return told
}

// record writes the outcome into the history and answers who asked.
func (f *flip) record(ctx context.Context, tx *pg.Tx, kind ledger.EventKind, next string) error {
	detail := ledger.FlipDetail{Seconds: f.c.Now().Sub(f.began).Seconds(), Ignored: f.ignored}
	if f.from != nil {
		detail.From = new(int(f.from.Number))
	}
	e := f.st.Entry(kind, f.outcome)
	e.By, e.Role = f.actor.By, f.actor.Role
	if err := ledger.AddFlip(ctx, tx, e, detail); err != nil {
		return err
	}
	return f.actor.Answer(ctx, tx, f.outcome, next)
}

// switchView ends the barrier and makes the view read the version.
func (f *flip) switchView(ctx context.Context, tx *pg.Tx, j ledger.JobRow) error {
	if f.by != "" {
		if err := f.c.Speed.Release(ctx, tx, f.by); err != nil {
			return err
		}
	}
	if err := f.c.switchView(ctx, tx, f.st, j); err != nil {
		return err
	}
	f.c.hit(FaultPromoteFlipping)
	return nil
}

// beforeReaders comes before what queues before readers: for no longer than LockTimeout, and a process that is frozen
// after it keeps readers waiting for no longer than slowFlip.
func (c *Controller) beforeReaders(ctx context.Context, tx *pg.Tx) error {
	if err := ledger.IdleTimeout(ctx, tx, slowFlip); err != nil {
		return err
	}
	return ledger.LockTimeout(ctx, tx, c.config.LockTimeout)
}

// switchView makes the view read the version, queueing before readers for no longer than LockTimeout.
func (c *Controller) switchView(ctx context.Context, tx *pg.Tx, st *ledger.State, j ledger.JobRow) error {
	if err := c.beforeReaders(ctx, tx); err != nil {
		return err
	}
	change := job.ViewChange{
		View: j.View(), To: st.Ref(), Layout: st.Layout, Contract: j.Contract(),
		Grant: st.Spec.Serve.Grant,
	}
	return c.Serving.Switch(ctx, tx, change, func(contract json.RawMessage) error {
		return ledger.SetLive(ctx, tx, st.Ref(), contract)
	})
}

func sameNumber(live *int, ref *job.Ref) bool {
	if ref == nil {
		return live == nil
	}
	return ledger.SameNumber(live, new(int(ref.Number)))
}

func liveChanged(st *ledger.State, live *int) error {
	a := ledger.LiveChanged(st.Ref(), live)
	return ledger.RefuseFor(a.Code, a.Next, a.Reason)
}
