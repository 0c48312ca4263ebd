package reprocess

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

const (
	// slowLock bounds the waits for our own rows in a flip.
	slowLock = 2 * time.Second
	// slowFlip bounds how long the transaction of a flip may stand still: once it has the view's lock, readers wait for it.
	slowFlip = 3 * time.Second
)

// flip is one try to make readers see another version.
type flip struct {
	actor actor
	st    *state // of the version that becomes live
	from  *job.Ref
	args  Args
	back  bool // a rollback

	by      string // holder of the barrier; empty when there is none
	line    line
	ignored []Blocker            // readers with an older snapshot that were not waited for
	behind  string               // how far a version is that readers go back to although it is behind; empty when it is not
	took    func() time.Duration // since the try began
}

// until repeats try, with jitter, while it may still succeed and the deadline is not over.
func (c *Controller) until(ctx context.Context, verb Verb, ref job.Ref, try func(context.Context) (string, error)) (string, error) {
	began := c.Now()
	for {
		text, err := try(ctx)
		if err == nil || !heals(err) {
			return text, err
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if c.Now().Sub(began) >= c.config.PromoteDeadline {
			return "", c.gaveUp(verb, ref, err)
		}
		every := c.config.RetryEvery
		if !sleep(ctx, every+time.Duration(c.rand.int64n(int64(every/2)))) {
			return "", ctx.Err()
		}
	}
}

// overRows repeats a transaction on rows of a job that others lock or move at the same moment, as agents do when they renew leases.
func (c *Controller) overRows(ctx context.Context, verb Verb, ref job.Ref, act func(*pg.Tx) error) error {
	_, err := c.until(ctx, verb, ref, func(ctx context.Context) (string, error) {
		err := c.Pool.ReadCommitted(ctx, act)
		if pg.Retryable(err) {
			err = &tryAgain{cause: "rows of the job are in use", err: err}
		}
		return "", err
	})
	return err
}

// gaveUp lists what the tries were stopped by.
func (c *Controller) gaveUp(verb Verb, ref job.Ref, err error) error {
	var t *tryAgain
	if !errors.As(err, &t) {
		return err
	}
	code := job.ExitTimeout
	if t.notReady {
		code = job.ExitNotCaughtUp
	}
	next, what := fmt.Sprintf("kappactl %s %s %s", verb, ref.Job, ref.Number), ref.String()
	if verb.ofJob() {
		next, what = fmt.Sprintf("kappactl %s %s", verb, ref.Job), string(ref.Job)
		if t.next != "" {
			next = t.next
		}
	}
	return refuse(code, next, "%s of %s gave up after %s: %s%s", verb, what, words(c.config.PromoteDeadline), t.cause, lines(t.blockers))
}

// run does the flip under a barrier, unless by is empty, in one transaction.
func (c *Controller) run(ctx context.Context, f *flip) (string, error) {
	began := c.Now()
	f.took = func() time.Duration { return c.Now().Sub(began) }
	if f.by != "" {
		l, err := c.barrier(ctx, f.by, f.st.ref(), *f.from)
		if err != nil {
			c.release(ctx, f.by)
			return "", err
		}
		f.line = l
		defer c.release(ctx, f.by)
	}
	var text string
	err := c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		var err error
		text, err = c.flipIn(ctx, tx, f)
		return err
	})
	if err != nil {
		return "", c.lockTrouble(ctx, "view", f.st.view(), err)
	}
	c.hit(FaultPromoteFlipped)
	c.log(f.st).Info(text, "by", f.actor.by)
	return text, nil
}

// lockTrouble turns what another try may heal into a tryAgain: a commit in doubt, or readers that hold the view
// (or what kind of relation it is).
func (c *Controller) lockTrouble(ctx context.Context, kind string, view job.ViewName, err error) error {
	var unsure *pg.CommitError
	switch {
	case ctx.Err() != nil:
		return err
	case errors.As(err, &unsure):
		return &tryAgain{cause: "the outcome of the commit is not known", err: err}
	case pg.Retryable(err):
		holders, e := lockHolders(ctx, c.Pool, view)
		if e != nil {
			return e
		}
		return &tryAgain{cause: fmt.Sprintf("a lock on %s %s could not be had within %s", kind, view, c.config.LockTimeout), blockers: holders, err: err}
	}
	return err
}

// flipIn is the flip: what it is conditioned on first, then phases, history and the answer, the view last.
func (c *Controller) flipIn(ctx context.Context, tx *pg.Tx, f *flip) (string, error) {
	if err := idleTimeout(ctx, tx, slowFlip); err != nil {
		return "", err
	}
	j, err := f.actor.begin(ctx, tx, job.Name(f.st.Job))
	if err != nil {
		return "", err
	}
	if err := lockVersions(ctx, tx, f.st.ref(), f.fromOr()); err != nil {
		return "", err
	}
	// As they are under the lock: what was applied in place since the state was read counts.
	spec, layout, err := specOf(ctx, tx, f.st.ref())
	if err != nil {
		return "", err
	}
	f.st.spec, f.st.layout = *spec, layout
	if err := c.conditions(ctx, tx, f, j); err != nil {
		return "", err
	}
	c.hit(FaultPromoteChecked)
	text, err := f.write(ctx, tx)
	if err != nil {
		return "", err
	}
	if f.by != "" {
		if err := c.Positions.Release(ctx, tx, f.by); err != nil {
			return "", err
		}
	}
	if err := c.switchView(ctx, tx, f.st, j); err != nil {
		return "", err
	}
	c.hit(FaultPromoteFlipping)
	return text, nil
}

func (f *flip) fromOr() job.Ref {
	if f.from == nil {
		return f.st.ref()
	}
	return *f.from
}

// conditions are judged under the locks: nobody else flipped, both versions stand at the barrier, the candidate is
// ready, and no reader has an older snapshot open.
func (c *Controller) conditions(ctx context.Context, tx *pg.Tx, f *flip, j jobRow) error {
	if !sameNumber(j.Live, f.from) {
		return liveChanged(f.st, j.Live)
	}
	if f.by != "" {
		there, err := c.Positions.Reached(ctx, tx, f.by, true)
		if err != nil {
			return err
		}
		if !there {
			return &tryAgain{cause: "the barrier ended before the flip"}
		}
	}
	if err := f.ready(ctx, tx); err != nil {
		return err
	}
	if f.by == "" {
		return nil
	}
	older, all, err := olderSnapshots(ctx, tx, f.line)
	if err != nil || len(older) == 0 {
		return err
	}
	if f.args.IgnoreSnapshots {
		f.ignored = older
		return nil
	}
	return &tryAgain{cause: "readers have a snapshot open that is older than the flip; they could see counters fall (--ignore-snapshots flips all the same)" +
		needlessly(all), blockers: older}
}

// ready says whether the version may be shown by what was sampled of it.
func (f *flip) ready(ctx context.Context, db pg.DB) error {
	if f.back && (f.args.Stale || f.by == "") {
		return nil // asked for, or away from a version that is down
	}
	now, err := readState(ctx, db, f.st.ref())
	if err != nil {
		return err
	}
	if now.Phase != f.st.Phase {
		return &tryAgain{cause: fmt.Sprintf("%s is no longer %s but %s", f.st.ref(), f.st.Phase, now.Phase), notReady: true}
	}
	v, err := freshVerdict(ctx, db, f.st.ref())
	if err != nil {
		return err
	}
	switch {
	case v.Verdict == job.Ready:
		return nil
	case v.Verdict == job.Unhealthy:
		return unhealthyRefusal(f.st, v)
	case (f.back || f.st.Phase == job.Standby) && f.by != "" && (v.Verdict == job.Holding || v.Verdict == job.Unknown || v.Verdict == job.Starting):
		return nil // readers saw it before, and the barrier has just shown that it reads
	}
	return &tryAgain{cause: fmt.Sprintf("%s is %s: %s", f.st.ref(), v.Verdict, v.Reason), notReady: true}
}

func unhealthyRefusal(st *state, v Judged) error {
	code := job.ExitUnhealthy
	if st.ExitCode != nil && *st.ExitCode == int(job.ExitGap) {
		code = job.ExitGap
	}
	return refuse(code, "kappactl status "+st.Job, "%s is unhealthy: %s", st.ref(), v.Reason)
}

// write moves phases and states and writes history and the answer.
func (f *flip) write(ctx context.Context, tx *pg.Tx) (string, error) {
	keep := f.st.spec.KeepOld
	if f.st.Phase == job.CaughtUp { // its checks passed on the way here
		if err := stepVersion(ctx, tx, f.st.ref(), job.CaughtUp, ChecksPassed); err != nil {
			return "", err
		}
		f.st.Phase = job.Verified
	}
	if err := stepVersion(ctx, tx, f.st.ref(), f.st.Phase, Flipped); err != nil {
		return "", err
	}
	if f.from != nil {
		if err := stepVersion(ctx, tx, *f.from, job.Live, Replaced); err != nil {
			return "", err
		}
	}
	err := becomeLive(ctx, tx, f.st.ref(), f.from, keep, f.back)
	if err != nil {
		return "", err
	}
	text, next := f.words(keep)
	text += f.warnings()
	if err := f.deployments(ctx, tx, keep, text); err != nil {
		return "", err
	}
	kind := "promoted"
	if f.back {
		kind = "rolled back"
	}
	e := f.st.entry(kind, "%s", text)
	e.By = f.actor.by
	if e.Detail, err = f.detail(ctx, tx); err != nil {
		return "", err
	}
	if err := addEvent(ctx, tx, e); err != nil {
		return "", err
	}
	return text, f.actor.answer(ctx, tx, text, next)
}

func (f *flip) deployments(ctx context.Context, tx *pg.Tx, keep time.Duration, text string) error {
	if f.back {
		if err := rolledBack(ctx, tx, *f.from, f.actor, text); err != nil {
			return err
		}
		if f.actor.reason != "" { // also in the history of the version that readers leave
			e := entry{Job: f.st.Job, Number: int(f.from.Number), Deployment: f.actor.deployment, Kind: "taken back", Message: text, By: f.actor.by}
			if err := addEvent(ctx, tx, e); err != nil {
				return err
			}
		}
		return endObserving(ctx, tx, f.st.Job, 0, job.Settled)
	}
	earlier := job.Settled
	if f.st.Phase == job.Standby {
		earlier = job.Superseded
		if !f.st.open() { // a person promotes it by name: that is a roll-out of its own
			id, err := insertFlip(ctx, tx, f.st, f.from, f.actor.by)
			if err != nil {
				return err
			}
			f.st.ID = id
		}
	}
	if err := endObserving(ctx, tx, f.st.Job, f.st.ID, earlier); err != nil {
		return err
	}
	return promoted(ctx, tx, f.st, f.from, keep)
}

// beforeReaders comes before what queues before readers: for no longer than LockTimeout, and a process that is frozen after it keeps
// readers waiting for no longer than slowFlip.
func (c *Controller) beforeReaders(ctx context.Context, tx *pg.Tx) error {
	if err := idleTimeout(ctx, tx, slowFlip); err != nil {
		return err
	}
	return lockTimeout(ctx, tx, c.config.LockTimeout)
}

// switchView makes the view read the version, queueing before readers for no longer than LockTimeout.
func (c *Controller) switchView(ctx context.Context, tx *pg.Tx, st *state, j jobRow) error {
	if err := c.beforeReaders(ctx, tx); err != nil {
		return err
	}
	contract, err := c.Views.Switch(ctx, tx, job.ViewChange{
		View: j.view(), To: st.ref(), Layout: st.layout, Contract: j.contract(), Grant: st.spec.Serve.Grant,
	})
	if err != nil {
		return err
	}
	return setLive(ctx, tx, st.ref(), contract)
}

func sameNumber(live *int, ref *job.Ref) bool {
	if live == nil || ref == nil {
		return live == nil && ref == nil
	}
	return *live == int(ref.Number)
}

func liveChanged(st *state, live *int) error {
	is := "none"
	if live != nil {
		is = job.Number(*live).String()
	}
	return refuse(job.ExitConflict, "kappactl deploy FILE compares it with what is live now",
		"the live version of %s changed since %s was staged: it is %s now", st.Job, st.ref(), is)
}
