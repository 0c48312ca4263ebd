package reprocess

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// maxExamples is how many differences a Diff shows.
const maxExamples = 10

// Diff is the keyed comparison of two versions at the same offsets. Its JSON is documented and only ever grows.
type Diff struct {
	Job      job.Name         `json:"job"`
	A        string           `json:"a"`
	B        string           `json:"b"`
	Keys     []string         `json:"keys"`
	Columns  []string         `json:"columns"` // compared: those that both have with the same type
	OnlyA    int64            `json:"only_a"`  // keys
	OnlyB    int64            `json:"only_b"`
	Changed  int64            `json:"changed"` // keys of both with other values
	Same     int64            `json:"same"`
	Examples []DiffExample    `json:"examples"`
	Offsets  map[string]int64 `json:"offsets"` // topic/partition: the offset up to which both had read
}

// DiffExample is one key that differs; A or B is null where the key is missing.
type DiffExample struct {
	Key json.RawMessage `json:"key"`
	A   json.RawMessage `json:"a"`
	B   json.RawMessage `json:"b"`
}

// Share is the part of all keys that differ, 0 to 1.
func (d Diff) Share() float64 {
	differ := d.OnlyA + d.OnlyB + d.Changed
	if differ == 0 {
		return 0
	}
	return float64(differ) / float64(differ+d.Same)
}

// DiffDeps is what a Diff works with.
type DiffDeps struct {
	Positions Positions
	Views     Views
	HoldFor   time.Duration // how long the versions may be held, and may take to come to the same offsets
}

// Diff holds both versions at the same offsets (architecture §9), takes a snapshot there, lets them go on, and compares in
// the snapshot. by names the holder. Versions that cannot come to the same offsets are a *job.Refusal.
func (s *Store) Diff(ctx context.Context, d DiffDeps, by string, a, b job.Ref) (Diff, error) {
	out := Diff{Job: a.Job, A: a.Number.String(), B: b.Number.String(), Examples: []DiffExample{}}
	plan, err := s.planDiff(ctx, d.Views, a, b)
	if err != nil {
		return out, fmt.Errorf("compare %s with %s: %w", a, b, err)
	}
	out.Keys, out.Columns = plan.keys, plan.columns
	release := func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		_ = d.Positions.Release(end, s.pool, by) // it ends by itself
	}
	defer release()
	if err := s.meet(ctx, d, by, a, b); err != nil {
		return out, err
	}
	err = s.pool.ReadOnly(ctx, func(tx *pg.Tx) error {
		there, err := d.Positions.Reached(ctx, tx, by, false) // takes the snapshot
		if err != nil {
			return err
		}
		if !there {
			return apart(a, b, d.HoldFor)
		}
		positions, err := d.Positions.Positions(ctx, tx, a)
		if err != nil {
			return err
		}
		release()
		out.Offsets = map[string]int64{}
		for _, p := range positions {
			out.Offsets[p.String()] = p.Next
		}
		return plan.run(ctx, tx.Raw(), &out)
	})
	if err != nil {
		return out, fmt.Errorf("compare %s with %s: %w", a, b, err)
	}
	return out, nil
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

// diffPlan is the SQL of a comparison.
type diffPlan struct {
	keys    []string
	columns []string
	join    string // a FULL JOIN of both: ka, kb, ra, rb, differs
}

// planDiff finds what the two versions can be compared by.
func (s *Store) planDiff(ctx context.Context, views Views, a, b job.Ref) (diffPlan, error) {
	var p diffPlan
	var layouts [2]job.Layout
	var selects [2]string
	for i, ref := range []job.Ref{a, b} {
		v, err := readVersion(ctx, s.pool, ref)
		if err != nil {
			return p, err
		}
		if v.EndedAt != nil || !v.Phase.Consumes() {
			return p, refuse(job.ExitConflict, "kappactl status "+string(ref.Job), "%s is %s: it has no table that can be compared", ref, v.Phase)
		}
		spec, layout, err := specOf(ctx, s.pool, ref)
		if err != nil {
			return p, err
		}
		layout = layout.Audited() // appended rows are compared by their place in the log
		layouts[i], selects[i] = layout, views.Select(ref, spec.Serve.View.Schema, layout)
	}
	var same []job.ViewColumn
	for _, v := range layouts[0].View {
		if i := slices.IndexFunc(layouts[1].View, func(w job.ViewColumn) bool { return w.Name == v.Name && (w.Type == v.Type || v.Computed) }); i >= 0 {
			v.Exact = v.Exact && layouts[1].View[i].Exact
			same = append(same, v)
		}
	}
	for _, l := range layouts {
		for _, v := range l.View {
			if v.Key && !slices.ContainsFunc(same, func(w job.ViewColumn) bool { return w.Name == v.Name && w.Key }) {
				return p, refuse(job.ExitUsage, "compare them with SQL", "the versions have other keys: %q is not a key of both", v.Name)
			}
		}
	}
	p.compose(same, selects)
	return p, nil
}

// compose writes the join. Keys are compared as jsonb, whose equality can be hashed; approximate values and doubles are
// the same when they differ in the last digits only.
func (p *diffPlan) compose(columns []job.ViewColumn, selects [2]string) {
	var keys, values, differs []string
	for _, c := range columns {
		n := pg.Ident(c.Name)
		p.columns = append(p.columns, c.Name)
		if c.Key {
			p.keys = append(p.keys, c.Name)
			keys = append(keys, "q."+n)
			continue
		}
		values = append(values, "q."+n)
		test := fmt.Sprintf("a.%s IS DISTINCT FROM b.%[1]s", n)
		if c.Type == "double precision" || c.Type == "real" {
			test = fmt.Sprintf("(%s AND NOT coalesce(abs(a.%s - b.%[2]s) <= 1e-9 * greatest(abs(a.%[2]s), abs(b.%[2]s)), false))", test, n)
		}
		differs = append(differs, test)
	}
	if len(differs) == 0 {
		differs = append(differs, "false")
	}
	side := func(text string) string {
		items := slices.Concat([]string{"jsonb_build_array(" + strings.Join(keys, ", ") + ") AS _k", "to_jsonb(q) AS _r"}, keys, values)
		return fmt.Sprintf("SELECT %s FROM (%s\n) AS q", strings.Join(items, ", "), text)
	}
	p.join = fmt.Sprintf(`SELECT a._k AS ka, b._k AS kb, a._r AS ra, b._r AS rb, (%s) AS differs FROM (%s) AS a FULL JOIN (%s) AS b ON a._k = b._k`,
		strings.Join(differs, " OR "), side(selects[0]), side(selects[1]))
}

func (p diffPlan) run(ctx context.Context, tx pgx.Tx, out *Diff) error {
	err := tx.QueryRow(ctx, fmt.Sprintf(`SELECT count(*) FILTER (WHERE kb IS NULL), count(*) FILTER (WHERE ka IS NULL),
		count(*) FILTER (WHERE ka IS NOT NULL AND kb IS NOT NULL AND differs), count(*) FILTER (WHERE ka IS NOT NULL AND kb IS NOT NULL AND NOT differs)
		FROM (%s) AS j`, p.join)).Scan(&out.OnlyA, &out.OnlyB, &out.Changed, &out.Same)
	if err != nil {
		return err
	}
	rows, err := tx.Query(ctx, fmt.Sprintf(`SELECT coalesce(ka, kb)::text, ra::text, rb::text FROM (%s) AS j
		WHERE ka IS NULL OR kb IS NULL OR differs ORDER BY coalesce(ka, kb) LIMIT %d`, p.join, maxExamples))
	if err != nil {
		return err
	}
	var key string
	var a, b *string
	_, err = pgx.ForEachRow(rows, []any{&key, &a, &b}, func() error {
		out.Examples = append(out.Examples, DiffExample{Key: json.RawMessage(key), A: rawOrNull(a), B: rawOrNull(b)})
		return nil
	})
	return err
}

func rawOrNull(text *string) json.RawMessage {
	if text == nil {
		return json.RawMessage("null")
	}
	return json.RawMessage(*text)
}
