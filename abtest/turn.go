package abtest

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/kappactl/kappactl/abtest/policy"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// slowFlip bounds how long a transaction may stand still once it has the view's lock: readers wait for it.
const slowFlip = 3 * time.Second

// turn is one try of an act, in one transaction.
type turn struct {
	r     *Runner
	tx    *pg.Tx
	actor ledger.Actor
	name  job.Name
	args  ledger.Args

	j       ledger.JobRow
	outcome reason.Reason
}

// do locks the job and does the act.
func (t *turn) do(ctx context.Context, verb ledger.Verb) (err error) {
	if t.j, err = t.actor.Begin(ctx, t.tx, t.name); err != nil {
		return err
	}
	e, err := open(ctx, t.tx, t.name)
	if err != nil {
		return err
	}
	if verb == ledger.ABStart {
		if e != nil {
			return ledger.RefuseFor(job.ExitConflict, "kappactl ab status "+string(t.name), reason.ABRunning(t.name, e.Run))
		}
		return t.start(ctx)
	}
	if e == nil {
		return ledger.RefuseFor(job.ExitConflict, "kappactl ab start "+string(t.name), reason.ABNone(t.name))
	}
	switch verb {
	case ledger.ABWeights:
		return t.weights(ctx, e)
	case ledger.ABPause:
		return t.pause(ctx, e)
	case ledger.ABResume:
		return t.resume(ctx, e)
	case ledger.ABStop:
		return t.stop(ctx, e)
	default:
		return ledger.UnknownVerb(verb)
	}
}

// record writes the outcome into the history and answers who asked.
func (t *turn) record(ctx context.Context, kind ledger.EventKind, outcome reason.Reason) error {
	t.outcome = outcome
	e := ledger.Entry{Job: string(t.name), Whole: true, Kind: kind, Message: outcome, By: t.actor.By, Role: t.actor.Role}
	if err := ledger.AddEvent(ctx, t.tx, e); err != nil {
		return err
	}
	return t.answer(ctx, outcome)
}

func (t *turn) answer(ctx context.Context, outcome reason.Reason) error {
	return t.actor.Answer(ctx, t.tx, outcome, "kappactl ab status "+string(t.name))
}

// beforeReaders comes before the view is written, which queues before readers.
func (t *turn) beforeReaders(ctx context.Context) error {
	if err := ledger.IdleTimeout(ctx, t.tx, slowFlip); err != nil {
		return err
	}
	return ledger.LockTimeout(ctx, t.tx, t.r.config.LockTimeout)
}

// note keeps the view's contract; the live version stays.
func (t *turn) note(ctx context.Context) func(json.RawMessage) error {
	return func(contract json.RawMessage) error { return ledger.SetLive(ctx, t.tx, t.live(), contract) }
}

// live is the version that readers saw before and see after the experiment.
func (t *turn) live() job.Ref { return job.Ref{Job: t.name, Number: job.Number(*t.j.Live)} }

// weights changes the shares of the arms.
func (t *turn) weights(ctx context.Context, e *row) error {
	status := "kappactl ab status " + string(t.name)
	if e.Assign == job.AssignHash {
		next := ledger.StopCommand(t.name) + ", then: kappactl ab start " + string(t.name) + " --assign sticky"
		return ledger.RefuseFor(job.ExitConflict, next, reason.ABFixed(t.name, e.Run))
	}
	given := make([]string, len(t.args.Weights))
	shares := make([]float64, len(e.Arms))
	for i, w := range t.args.Weights {
		given[i] = w.Version.String()
		if at := slices.Index(e.Arms, given[i]); at >= 0 {
			shares[at] = w.Weight
		}
	}
	if !sameArms(given, e.Arms) {
		return ledger.RefuseFor(job.ExitUsage, status, reason.ABOtherArms(t.name, e.Run, e.Arms, given))
	}
	if err := job.CheckWeights(t.args.Weights); err != nil {
		return ledger.RefuseFor(job.ExitUsage, status, reason.ABWrongWeights(err))
	}
	e.Weights = policy.PPM(shares)
	e.Epoch++
	if err := weigh(ctx, t.tx, e); err != nil {
		return err
	}
	now := reason.ABWeights(t.name, e.Run, e.texts())
	if err := decide(ctx, t.tx, e, Weighed, now, t.actor.By, nil); err != nil {
		return err
	}
	return t.record(ctx, ledger.EventABWeights, now)
}

func sameArms(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// pause makes every reader read the control; assignments stay.
func (t *turn) pause(ctx context.Context, e *row) error {
	if e.State == Paused {
		return t.answer(ctx, reason.ABAlready(t.name, e.Run, string(e.State)))
	}
	return t.move(ctx, e, Paused, Stopped, ledger.EventABPaused, reason.ABPaused(t.name, e.Run, e.Arms[0]))
}

// resume splits readers again, by the arms that they had.
func (t *turn) resume(ctx context.Context, e *row) error {
	if e.State == Running {
		return t.answer(ctx, reason.ABAlready(t.name, e.Run, string(e.State)))
	}
	for _, arm := range e.Arms {
		n, err := job.ParseNumber(arm)
		if err != nil {
			return err
		}
		if _, err := readyArm(ctx, t.tx, job.Ref{Job: t.name, Number: n}); err != nil {
			return err
		}
	}
	// What a person has overridden does not pause it again; nor do those who have read the control during the pause.
	p := &e.Progress
	if p.Accepted = append(p.Accepted, reason.CodeABCrossed); p.Cause != "" {
		p.Accepted, p.Cause = append(p.Accepted, p.Cause), ""
	}
	if err := keepProgress(ctx, t.tx, e, *p); err != nil {
		return err
	}
	return t.move(ctx, e, Running, Resumed, ledger.EventABResumed, reason.ABResumed(t.name, e.Run, t.args.Accept))
}

func (t *turn) move(ctx context.Context, e *row, to State, v Verdict, kind ledger.EventKind, why reason.Reason) error {
	if err := setState(ctx, t.tx, e, to, why); err != nil {
		return err
	}
	if err := decide(ctx, t.tx, e, v, why, t.actor.By, nil); err != nil {
		return err
	}
	return t.record(ctx, kind, why)
}

// stop ends the experiment: every reader reads the live version.
func (t *turn) stop(ctx context.Context, e *row) error {
	why := reason.ABStopped(t.name, e.Run, t.live().Number.String())
	if cause := t.args.Because; !cause.IsZero() {
		why = reason.ABRolledBack(t.name, e.Run, t.live().Number.String(), cause)
	}
	if err := end(ctx, t.tx, e, why, t.actor.By); err != nil {
		return err
	}
	t.outcome = why
	if err := t.answer(ctx, why); err != nil {
		return err
	}
	st, err := ledger.ReadState(ctx, t.tx, t.live())
	if err != nil {
		return err
	}
	if err := t.beforeReaders(ctx); err != nil {
		return err
	}
	change := job.ViewChange{
		View: t.j.View(), To: st.Ref(), Layout: st.Layout, Contract: t.j.Contract(),
		Grant: st.Spec.Serve.Grant,
	}
	return t.r.Serving.Switch(ctx, t.tx, change, t.note(ctx))
}
