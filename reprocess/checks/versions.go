package checks

import (
	"context"
	"errors"
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// Versions is Diff for two versions of a job by name. It returns a *job.Refusal if the versions cannot be compared or
// do not reach the same offsets.
func (d Differ) Versions(ctx context.Context, by string, a, b job.Ref, how job.DiffHow) (Diff, error) {
	sides, err := d.sides(ctx, a, b)
	if err != nil {
		return Diff{}, fmt.Errorf("compare %s with %s: %w", a, b, err)
	}
	out, err := d.Diff(ctx, by, sides[0], sides[1], how)
	var missed *Missed
	switch {
	case errors.As(err, &missed) && missed.Apart:
		return out, ledger.Refuse(job.ExitNotCaughtUp, "kappactl status "+string(a.Job),
			"%s: one of them is far behind, paused or without an agent", missed.Reason)
	case err != nil:
		return out, fmt.Errorf("compare %s with %s: %w", a, b, err)
	}
	return out, nil
}

// sides returns two versions that have tables and can be compared.
func (d Differ) sides(ctx context.Context, a, b job.Ref) (out [2]job.Version, err error) {
	if a.Adopted() && b.Adopted() {
		return out, ledger.Refuse(job.ExitUsage, fmt.Sprintf("kappactl diff %s v0 VERSION", a.Job),
			"%s is the adopted table on both sides: name another version", a)
	}
	schema := ""
	for i, ref := range []job.Ref{a, b} {
		v, err := ledger.ReadVersion(ctx, d.Pool, ref)
		if err != nil {
			return out, err
		}
		if v.EndedAt != nil || !v.Phase.Consumes() {
			return out, ledger.Refuse(job.ExitConflict, "kappactl status "+string(ref.Job),
				"%s is %s: it has no table to compare", ref, v.Phase)
		}
		spec, layout, err := ledger.ReadSpec(ctx, d.Pool, ref)
		if err != nil {
			return out, err
		}
		out[i] = job.Version{Ref: ref, Layout: layout}
		if !ref.Adopted() { // an adopted version has no job file
			schema = spec.Serve.View.Schema
		}
	}
	for i, other := range []job.Layout{out[1].Layout, out[0].Layout} {
		if out[i].Adopted() {
			out[i].Layout = out[i].Layout.KeyedAs(other)
		}
		out[i].Schema = schema
	}
	return out, nil
}
