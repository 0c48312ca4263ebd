package reprocess

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Diff is the keyed comparison of two versions at the same offsets. Its JSON is documented and only ever grows.
type Diff struct {
	Job      job.Name         `json:"job"`
	A        string           `json:"a"`
	B        string           `json:"b"`
	Keys     []string         `json:"keys"`
	Columns  []string         `json:"columns"` // compared: those that both have with the same type, and that are not ignored
	Where    string           `json:"where,omitempty"`
	OnlyA    int64            `json:"only_a"` // keys
	OnlyB    int64            `json:"only_b"`
	Changed  int64            `json:"changed"` // keys of both with other values
	Same     int64            `json:"same"`
	Examples []DiffExample    `json:"examples"`
	Offsets  map[string]int64 `json:"offsets"` // topic/partition: the offset up to which both had read; what was adopted has none
}

// DiffKind says how a key differs.
type DiffKind string

// The kinds of a difference.
const (
	OnlyA   DiffKind = "only_a"
	OnlyB   DiffKind = "only_b"
	Changed DiffKind = "changed"
)

// DiffExample is one key that differs; A or B is null where the key is missing. Columns are those with other values.
type DiffExample struct {
	Kind    DiffKind        `json:"kind"`
	Key     json.RawMessage `json:"key"`
	Columns []string        `json:"columns"`
	A       json.RawMessage `json:"a"`
	B       json.RawMessage `json:"b"`
}

// All is how many keys were compared.
func (d Diff) All() int64 { return d.OnlyA + d.OnlyB + d.Changed + d.Same }

// Share is the part of all keys that differ, 0 to 1.
func (d Diff) Share() float64 { return share(d.OnlyA+d.OnlyB+d.Changed, d.All()) }

func share(part, of int64) float64 {
	if part == 0 {
		return 0
	}
	return float64(part) / float64(of)
}

// DiffDeps is what a Diff works with.
type DiffDeps struct {
	Positions Positions
	Views     Views
	HoldFor   time.Duration // how long the versions may be held, and may take to come to the same offsets
}

// Diff holds both versions at the same offsets (architecture §9), takes a snapshot there, lets them go on, and compares in
// the snapshot. by names the holder. Versions that cannot come to the same offsets are a *job.Refusal. A table that was adopted has no
// offsets to be held at: it is compared as it is.
func (s *Store) Diff(ctx context.Context, d DiffDeps, by string, a, b job.Ref, how job.DiffHow) (Diff, error) {
	out := Diff{Job: a.Job, A: a.Number.String(), B: b.Number.String(), Examples: []DiffExample{}, Offsets: map[string]int64{}}
	sides, err := s.sides(ctx, d.Views, a, b)
	if err != nil {
		return out, fmt.Errorf("compare %s with %s: %w", a, b, err)
	}
	release := func() {}
	if !a.Adopted() && !b.Adopted() {
		release = func() {
			end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
			_ = d.Positions.Release(end, s.pool, by) // it ends by itself
		}
		defer release()
		if err := s.meet(ctx, d, by, a, b); err != nil {
			return out, err
		}
	}
	err = s.pool.ReadOnly(ctx, func(tx *pg.Tx) error {
		if !a.Adopted() && !b.Adopted() {
			there, err := d.Positions.Reached(ctx, tx, by, false) // takes the snapshot
			if err != nil {
				return err
			}
			if !there {
				return apart(a, b, d.HoldFor)
			}
		}
		from := a
		if a.Adopted() {
			from = b
		}
		positions, err := d.Positions.Positions(ctx, tx, from)
		if err != nil {
			return err
		}
		release()
		out.Offsets = offsetsOf(positions)
		return compare(pg.Long(ctx), tx.Raw(), plainly(tx.Raw()), sides[0], sides[1], how, &out)
	})
	if err != nil {
		return out, fmt.Errorf("compare %s with %s: %w", a, b, err)
	}
	return out, nil
}

func offsetsOf(positions []job.Position) map[string]int64 {
	at := make(map[string]int64, len(positions))
	for _, p := range positions {
		at[p.String()] = p.Next
	}
	return at
}

// sides are the rows of two versions that have tables and can be compared.
func (s *Store) sides(ctx context.Context, views Views, a, b job.Ref) (out [2]side, err error) {
	if a.Adopted() && b.Adopted() {
		return out, refuse(job.ExitUsage, fmt.Sprintf("kappactl diff %s v0 VERSION, of another version", a.Job), "%s was adopted: it has only itself to be compared with", a)
	}
	schema := ""
	for i, ref := range []job.Ref{a, b} {
		v, err := readVersion(ctx, s.pool, ref)
		if err != nil {
			return out, err
		}
		if v.EndedAt != nil || !v.Phase.Consumes() {
			return out, refuse(job.ExitConflict, "kappactl status "+string(ref.Job), "%s is %s: it has no table that can be compared", ref, v.Phase)
		}
		spec, layout, err := specOf(ctx, s.pool, ref)
		if err != nil {
			return out, err
		}
		out[i] = side{ref: ref, layout: layout}
		if !ref.Adopted() { // which has no job file
			schema = spec.Serve.View.Schema
		}
	}
	for i, other := range []job.Layout{out[1].layout, out[0].layout} {
		if out[i].ref.Adopted() {
			out[i].layout = keyedAs(out[i].layout, other)
		}
		out[i].rows = views.Select(out[i].ref, schema, out[i].layout.Audited())
	}
	_, _, err = commonColumns(out[0].layout, out[1].layout)
	return out, err
}

// meet holds both versions and waits until they are at the same offsets.
func (s *Store) meet(ctx context.Context, d DiffDeps, by string, a, b job.Ref) error {
	err := s.pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := lockTimeout(ctx, tx, d.HoldFor); err != nil {
			return err
		}
		return d.Positions.Hold(ctx, tx, by, d.HoldFor, a, b)
	})
	if err != nil {
		return fmt.Errorf("hold %s and %s at the same offsets: %w", a, b, err)
	}
	until := time.NewTimer(d.HoldFor)
	defer until.Stop()
	for {
		there, err := d.Positions.Reached(ctx, s.pool, by, false)
		if err != nil || there {
			return err
		}
		wait := time.NewTimer(50 * time.Millisecond)
		select {
		case <-wait.C:
		case <-until.C:
			wait.Stop()
			return apart(a, b, d.HoldFor)
		case <-ctx.Done():
			wait.Stop()
			return context.Cause(ctx)
		}
	}
}

func apart(a, b job.Ref, after time.Duration) error {
	return refuse(job.ExitNotCaughtUp, "kappactl status "+string(a.Job), "%s and %s did not come to the same offsets within %s: one of them is far behind, paused or without an agent", a, b, words(after))
}
