package checks

import (
	"context"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
)

// Differ compares two versions key by key.
type Differ struct {
	Pool      *pg.Pool
	Barrier   Barrier
	Positions Positions
	Views     Views
}

// Diff stops both versions at the same offsets, takes a snapshot there, releases them, and compares in the snapshot. by
// names the holder of the barrier. It returns a *Missed if the versions do not reach the same offsets. An adopted table
// has no offsets and is compared in its current state.
func (d Differ) Diff(ctx context.Context, by string, a, b job.Version, how job.DiffHow) (Diff, error) {
	out := Diff{
		Job: a.Job, A: a.Number.String(), B: b.Number.String(),
		Examples: []Example{}, Offsets: map[string]int64{},
	}
	if _, _, err := commonColumns(a.Layout, b.Layout); err != nil {
		return out, err
	}
	held := !a.Adopted() && !b.Adopted()
	if held {
		defer d.Barrier.Release(ctx, by)
		if err := d.Barrier.Stop(ctx, by, a.Ref, b.Ref); err != nil {
			return out, err
		}
	}
	err := d.Pool.ReadOnly(ctx, func(tx *pg.Tx) error {
		if held {
			there, err := d.Positions.Reached(ctx, tx, by, false) // takes the snapshot
			if err != nil {
				return err
			}
			if !there {
				return &Missed{Apart: true, Reason: reason.VersionsApart(a.Ref, b.Ref, d.Barrier.HoldFor)}
			}
		}
		from := a.Ref
		if from.Adopted() {
			from = b.Ref
		}
		positions, err := d.Positions.Positions(ctx, tx, from)
		if err != nil {
			return err
		}
		if held {
			d.Barrier.Release(ctx, by)
		}
		out.Offsets = offsetsOf(positions)
		return compare(pg.Long(ctx), tx.Raw(), direct(tx.Raw()), d.side(a), d.side(b), how, &out)
	})
	return out, err
}

// side returns a version as one side of a comparison.
func (d Differ) side(v job.Version) side {
	return side{v.Layout, d.Views.Select(v.Audited())}
}

func offsetsOf(positions []job.Position) map[string]int64 {
	at := make(map[string]int64, len(positions))
	for _, p := range positions {
		at[p.String()] = p.Next
	}
	return at
}
