package query

import (
	"context"
	"slices"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
)

// derive builds PARTIAL, MERGE and FINISH of a query that passed all checks.
func (c *compiler) derive(ctx context.Context) (*Compiled, error) {
	if c.rows != nil {
		return c.deriveRows(ctx)
	}
	states, err := c.stored, error(nil)
	if states == nil {
		if states, err = c.states(ctx); err != nil {
			return nil, err
		}
	}
	forms, err := c.templates(ctx)
	if err != nil {
		return nil, err
	}
	out := &Compiled{Fields: c.fields(), source: c.source, places: c.ties(), oneTopic: len(c.spec.Source.Topics) == 1}
	if out.Partial, err = c.session.write(ctx, c.partial(forms, states, forms.carried(out.places))); err != nil {
		return nil, err
	}
	if err := c.writeQuick(ctx, out, forms, states); err != nil {
		return nil, err
	}
	if err := c.typeStates(ctx, out.prelude()+"SELECT * FROM ("+out.Partial+")", states); err != nil {
		return nil, err
	}
	oracle, err := c.oracle(ctx, forms.carried(out.places))
	if err != nil {
		return nil, err
	}
	if out.Oracle, err = c.session.write(ctx, oracle); err != nil {
		return nil, err
	}
	if prelude := out.prelude(); prelude != "" {
		out.Oracle = prelude + "SELECT * FROM (" + out.Oracle + ")"
	}
	if out.Sieve, err = c.sieve(ctx, out, c.statement); err != nil {
		return nil, err
	}
	out.Audit = out.Oracle
	if c.outer != nil {
		out.Oracle, out.Audit = c.outerOracles(out.Oracle)
	}
	out.Layout, out.outputs = c.layout(states), c.outputs(states)
	if out.landed, err = c.landedAt(ctx, out.Land(), states); err != nil {
		return nil, err
	}
	if c.outer != nil {
		out.answers = c.outerAnswers()
		for _, it := range c.hiddenKeys() {
			out.hidden = append(out.hidden, column{it.name, it.duck})
		}
		return out, nil
	}
	for _, it := range c.items {
		out.answers = append(out.answers, column{it.name, it.duck})
	}
	return out, nil
}

// ties reports whether an aggregate orders by place in the log.
func (c *compiler) ties() bool {
	return slices.ContainsFunc(c.items, func(it item) bool { return it.call != nil && it.call.form.ties })
}

// states assigns each aggregate its states. Equal states of two aggregates are stored once.
func (c *compiler) states(ctx context.Context) ([]*state, error) {
	var out []*state
	var outputs []string
	for _, it := range c.items {
		outputs = append(outputs, it.name)
	}
	free := takenNames(outputs...)
	relation := relationName(c.node.child("from_table"))
	known := map[string]*state{}
	for i := range c.items {
		it := &c.items[i]
		if it.call == nil {
			continue
		}
		it.call.names = map[string]string{}
		var added []*state
		for _, p := range it.call.form.parts {
			value, err := c.expand(ctx, it.call, it.call.text(p))
			if err != nil {
				return nil, err
			}
			sig := string(p.merge) + p.order + value.signature(relation)
			s := known[sig]
			if s == nil {
				s = &state{
					name: it.name, value: value, merge: p.merge, with: p.with, place: p.place, limit: p.limit,
					order: p.order, of: it,
				}
				if p.suffix != "" {
					s.name = free.stored(it.name, p.suffix, i+1)
				}
				known[sig] = s
				out, added = append(out, s), append(added, s)
			}
			it.call.names[p.suffix] = s.name
		}
		for _, s := range added {
			with := make([]string, len(s.with))
			for j, suffix := range s.with {
				with[j] = it.call.names[suffix]
				s.more = append(s.more, find(out, with[j]))
			}
			s.with = with
		}
	}
	return out, nil
}

// find returns the state with a name.
func find(states []*state, name string) *state {
	i := slices.IndexFunc(states, func(s *state) bool { return s.name == name })
	if i < 0 {
		return &state{}
	}
	return states[i]
}

// outputs returns the stored columns of PARTIAL with their DuckDB types: keys in the order of the query, then states.
func (c *compiler) outputs(states []*state) []output {
	var out []output
	for _, it := range c.items {
		if it.key {
			out = append(out, output{column{it.name, it.duck}, postgresText})
		}
	}
	for _, s := range states {
		write := postgresText
		if s.place {
			write = placeText
		}
		out = append(out, output{column{s.name, s.duck}, write})
	}
	return out
}

// layout returns the stored form.
func (c *compiler) layout(states []*state) job.Layout {
	l := job.Layout{Shape: job.Rollup, Where: c.spec.Serve.Where, Lambda: c.spec.Mode == job.Lambda}
	for _, it := range c.items {
		if it.key {
			l.Keys = append(l.Keys, job.KeyColumn{Name: it.name, Type: stored(it.pg), Time: timeKey(it.pg)})
		}
		if c.outer == nil {
			l.View = append(l.View, c.viewColumn(it))
		}
	}
	if c.outer != nil {
		l.View = c.outerView()
	}
	slices.SortStableFunc(l.Keys, func(a, b job.KeyColumn) int { return timeFirst(a.Time, b.Time) })
	for _, s := range states {
		l.States = append(l.States, job.StateColumn{
			Name: s.name, Type: stored(s.pg), Combine: s.combine(), Aggregate: s.aggregate(),
		})
	}
	c.addOuter(&l)
	l.View = append(l.View, c.serveColumns(l)...)
	c.checkServe(l)
	return l
}

// timeFirst orders time keys before others.
func timeFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

func (c *compiler) viewColumn(it item) job.ViewColumn {
	if it.key {
		return job.ViewColumn{
			Name: it.name, Type: it.pg, Finish: "s." + ident(it.name), StoredAs: "key", Exact: true, Key: true,
		}
	}
	finish := it.call.finish()
	if it.call.form.listed && strings.Contains(it.pg, "(") { // CASE loses precision and scale
		finish = "(" + finish + ")::" + it.pg
	}
	return job.ViewColumn{
		Name: it.name, Type: it.pg, StoredAs: it.call.form.stored, Exact: !it.call.form.approx, Finish: finish,
		Counts: it.call.function == "histogram",
	}
}
