package abtest

import (
	"context"
	"slices"

	"github.com/kappactl/kappactl/abtest/judge"
	"github.com/kappactl/kappactl/abtest/policy"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// start begins a run: rows, history and answer, then the view.
func (t *turn) start(ctx context.Context) error {
	if t.j.Live == nil {
		return ledger.RefuseFor(job.ExitConflict, "kappactl status "+string(t.name), reason.NothingLive(t.name))
	}
	weights, arms, err := t.arms(ctx)
	if err != nil {
		return err
	}
	settings := t.settings(arms)
	e := &row{
		Job: string(t.name), Assign: settings.Assign, Coverage: int(settings.Coverage*policy.Million + 0.5),
		StartedBy: t.actor.By, Epoch: 1,
		Settings: settings,
	}
	if settings.By() != job.ABTest && settings.Assign == job.AssignHash {
		return ledger.RefuseFor(job.ExitUsage, "kappactl ab start "+string(t.name), reason.ABNeedsSticky(settings.By()))
	}
	shares := make([]float64, len(weights))
	for i, w := range weights {
		e.Arms = append(e.Arms, w.Version.String())
		shares[i] = w.Weight
	}
	if settings.By() == job.ABRamp && len(t.args.Weights) == 0 {
		shares = judge.RampWeights(shares, settings.Ramp[0].Weight)
	}
	e.Weights = policy.PPM(shares)
	last, err := newest(ctx, t.tx, t.name)
	if err != nil {
		return err
	}
	if e.Run = 1; last != nil {
		e.Run = last.Run + 1
	}
	why := reason.ABStarted(t.name, e.Run, e.texts(), settings.Coverage)
	if err := insert(ctx, t.tx, e, why); err != nil {
		return err
	}
	if err := t.record(ctx, ledger.EventABStarted, why); err != nil {
		return err
	}
	split := job.ViewSplit{View: t.j.View(), Job: t.name, Run: e.Run, Contract: t.j.Contract()}
	for _, st := range arms {
		split.Arms = append(split.Arms, st.Version())
	}
	if err := t.beforeReaders(ctx); err != nil {
		return err
	}
	return t.r.Serving.Split(ctx, t.tx, split, t.note(ctx))
}

// arms are the weights that were asked for, the control first, and the versions, which are ready to be read.
func (t *turn) arms(ctx context.Context) ([]job.ArmWeight, []*ledger.State, error) {
	live := t.live().Number
	weights, err := t.wanted(ctx, live)
	if err != nil {
		return nil, nil, err
	}
	start := "kappactl ab start " + string(t.name)
	at := slices.IndexFunc(weights, func(w job.ArmWeight) bool { return w.Version == live })
	if at < 0 {
		return nil, nil, ledger.RefuseFor(job.ExitUsage, start, reason.ABWithoutLive(live.String()))
	}
	if err := job.CheckWeights(weights); err != nil {
		return nil, nil, ledger.RefuseFor(job.ExitUsage, start, reason.ABWrongWeights(err))
	}
	control := weights[at]
	weights = append([]job.ArmWeight{control}, slices.Delete(slices.Clone(weights), at, at+1)...)
	states := make([]*ledger.State, len(weights))
	for i, w := range weights {
		if states[i], err = readyArm(ctx, t.tx, job.Ref{Job: t.name, Number: w.Version}); err != nil {
			return nil, nil, err
		}
	}
	return weights, states, nil
}

// wanted are the weights of the request, else those of the newest job file that has some, else live and the one
// candidate, equally.
func (t *turn) wanted(ctx context.Context, live job.Number) ([]job.ArmWeight, error) {
	if len(t.args.Weights) > 0 {
		return t.args.Weights, nil
	}
	found, err := candidates(ctx, t.tx, t.name)
	if err != nil {
		return nil, err
	}
	if len(found) > 0 {
		st, err := ledger.ReadState(ctx, t.tx, job.Ref{Job: t.name, Number: found[len(found)-1]})
		if err != nil {
			return nil, err
		}
		if st.Spec.Experiment != nil && len(st.Spec.Experiment.Weights) > 0 {
			return st.Spec.Experiment.Weights, nil
		}
	}
	if len(found) != 1 {
		names := make([]string, len(found))
		for i, n := range found {
			names[i] = n.String()
		}
		next := "kappactl ab start " + string(t.name) + " --weights " + live.String() + "=0.9,VERSION=0.1"
		return nil, ledger.RefuseFor(job.ExitConflict, next, reason.ABNoCandidate(t.name, live.String(), names))
	}
	return []job.ArmWeight{{Version: live, Weight: 0.5}, {Version: found[0], Weight: 0.5}}, nil
}

// settings are those of the newest arm's job file, with what the request says.
func (t *turn) settings(arms []*ledger.State) job.Experiment {
	out := job.DefaultExperiment()
	newest := slices.MaxFunc(arms, func(a, b *ledger.State) int { return a.Number - b.Number })
	if newest.Spec.Experiment != nil {
		out = *newest.Spec.Experiment
	}
	if t.args.Coverage != nil {
		out.Coverage = *t.args.Coverage
	}
	if t.args.Assign != "" {
		out.Assign = t.args.Assign
	}
	return out
}

// readyArm locks a version and reads it. One that readers cannot be sent to is refused.
func readyArm(ctx context.Context, tx *pg.Tx, ref job.Ref) (*ledger.State, error) {
	if err := ledger.LockVersions(ctx, tx, ref, ref); err != nil {
		return nil, err
	}
	st, err := ledger.ReadState(ctx, tx, ref)
	if err != nil {
		return nil, err
	}
	status := "kappactl status " + st.Job
	switch {
	case ref.Adopted():
		return nil, ledger.RefuseFor(job.ExitConflict, status, reason.NotKeptUp(ref))
	case st.PausedAt != nil:
		return nil, ledger.RefuseFor(job.ExitConflict, "kappactl resume "+st.Job+" "+ref.Number.String(),
			reason.VersionPaused(ref))
	}
	v, err := ledger.FreshVerdict(ctx, tx, ref)
	if err != nil {
		return nil, err
	}
	switch st.Phase {
	case job.CaughtUp, job.Verified, job.Live, job.Standby:
	case job.Staged, job.Replaying, job.Building, job.CatchingUp:
		return nil, ledger.RefuseFor(job.ExitNotCaughtUp, "kappactl wait "+st.Job+" "+ref.Number.String()+" --for verified",
			reason.NotCaughtUp(ref, st.Phase, v.Verdict, v.Reason))
	default:
		return nil, ledger.RefuseFor(job.ExitConflict, status, reason.InPhase(ref, st.Phase))
	}
	notReady := ledger.RefuseFor(job.ExitNotCaughtUp, status, reason.NotReady(ref, v.Verdict, v.Reason))
	switch v.Verdict {
	case job.Ready:
		return st, nil
	case job.Unhealthy:
		return nil, ledger.RefuseFor(job.ExitUnhealthy, status, reason.Unhealthy(ref, v.Reason))
	case job.Unknown, job.Starting, job.Holding: // as after another agent has taken over
		return nil, &tryAgain{notReady}
	default:
		return nil, notReady
	}
}
