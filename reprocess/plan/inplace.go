package plan

import (
	"context"
	"encoding/json"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// pendingChange returns the changes of a staging to the version of its hash; nil without a change.
func pendingChange(ctx context.Context, db pg.DB, in Staging, number int) (*ledger.PendingChange, error) {
	spec, layout, err := ledger.ReadSpec(ctx, db, job.Ref{Job: in.Spec.Job, Number: job.Number(number)})
	if err != nil {
		return nil, err
	}
	in.Layout.Keep = sameKeep(layout.Keep, in.Layout.Keep)
	changed, err := changes(spec, in.Spec)
	if err != nil {
		return nil, err
	}
	same, err := sameLayout(layout, in.Layout)
	if err != nil {
		return nil, err
	}
	if !same && !reshapes(changed) {
		changed = append(changed, ledger.ViewChanged)
	}
	if len(changed) == 0 {
		return nil, nil //nolint:nilnil // nothing changes
	}
	out := &ledger.PendingChange{File: in.File, Changed: changed}
	s, l, err := ledger.EncodeSpec(in.Spec, in.Layout)
	out.Spec, out.Layout = json.RawMessage(s), json.RawMessage(l)
	return out, err
}

// keepLive applies to the live version what is not part of the hash. What readers see is written by the controller of a
// deployment; the rest is in force at once.
func keepLive(ctx context.Context, tx *pg.Tx, in Staging, j ledger.JobRow, live ledger.VersionKey,
	open []ledger.OpenDeployment,
) (Staged, error) {
	out := Staged{Job: in.Spec.Job, Number: job.Number(live.Number), Live: true}
	w, err := pendingChange(ctx, tx, in, live.Number)
	if err != nil {
		return out, err
	}
	if out.Deployment, err = ledger.NewestDeployment(ctx, tx, j.Name, live.Number); err != nil {
		return out, err
	}
	for _, d := range open {
		if d.Number == live.Number && d.FlipOnly && d.State == job.RollingOut && w != nil { // it is being applied: with the newest change
			out.Deployment, out.FlipOnly, out.Resumed, out.Applied = d.ID, true, true, w.Changed
			return out, ledger.SetPending(ctx, tx, d.ID, w)
		}
	}
	switch {
	case w == nil:
		out.Nothing = true
		return out, nil
	case !reshapes(w.Changed):
		out.Applied, err = applyPlainly(ctx, tx, in, live.Number, out.Deployment)
		return out, err
	}
	if err := otherRollingOut(j.Name, 0, open); err != nil {
		return Staged{}, err
	}
	out.FlipOnly, out.Applied = true, w.Changed
	if out.Deployment, err = ledger.InsertDeployment(ctx, tx,
		in.deployment(j, live.Number, true, job.PromoteAuto)); err != nil {
		return out, err
	}
	if err := ledger.SetPending(ctx, tx, out.Deployment, w); err != nil {
		return out, err
	}
	return out, ledger.AddEvent(ctx, tx, ledger.Entry{
		Job: j.Name, Number: live.Number, Deployment: out.Deployment, Kind: ledger.EventDeploy, By: in.By,
		Message: reason.ToApply(w.Changed),
	})
}

// applyPlainly puts what changed beside the hash in force at once, with its event.
func applyPlainly(ctx context.Context, tx *pg.Tx, in Staging, number int, deployment int64) ([]string, error) {
	w, err := pendingChange(ctx, tx, in, number)
	if err != nil || w == nil {
		return nil, err
	}
	ref := job.Ref{Job: in.Spec.Job, Number: job.Number(number)}
	if err := w.Write(ctx, tx, ref); err != nil {
		return nil, err
	}
	return w.Changed, ledger.AddEvent(ctx, tx, ledger.Entry{
		Job: string(ref.Job), Number: number, Deployment: deployment, Kind: ledger.EventApplied, By: in.By,
		Message: reason.Applied(w.Changed), Detail: w.Changed,
	})
}

// sameKeep is the keep of a compiled layout with what the version's own remembers of rows that are gone.
func sameKeep(stored, compiled *job.Keep) *job.Keep {
	switch {
	case stored == nil || stored.From == nil:
		return compiled
	case compiled == nil && stored.For > 0:
		return nil
	case compiled == nil:
		return stored
	}
	k := *compiled
	k.From = stored.From
	return &k
}
