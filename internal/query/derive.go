package query

import (
	"context"
	"slices"

	"github.com/kappactl/kappactl/internal/job"
)

// derive builds PARTIAL, MERGE and FINISH of a query that passed.
func (c *compiler) derive(ctx context.Context) (*Compiled, error) {
	forms, err := c.templates(ctx)
	if err != nil {
		return nil, err
	}
	states := c.states(forms)
	out := &Compiled{Fields: c.fields(), source: c.source}
	if out.Partial, err = c.session.write(ctx, c.partial(forms, states, false)); err != nil {
		return nil, err
	}
	if out.laned, err = c.session.write(ctx, c.partial(forms, states, true)); err != nil {
		return nil, err
	}
	if err := c.typeStates(ctx, out.Partial, states); err != nil {
		return nil, err
	}
	if out.Oracle, err = c.session.write(ctx, c.oracle(forms, states)); err != nil {
		return nil, err
	}
	if prelude := out.prelude(1); prelude != "" {
		out.Oracle = prelude + "SELECT * FROM (" + out.Oracle + ")"
	}
	out.Layout, out.outputs = c.layout(states), c.outputs(states)
	for _, it := range c.items {
		out.answers = append(out.answers, column{it.name, it.duck})
	}
	return out, nil
}

// states gives every aggregate its states; equal states of two aggregates are stored once.
func (c *compiler) states(forms templates) []*state {
	var out []*state
	var outputs []string
	for _, it := range c.items {
		outputs = append(outputs, it.name)
	}
	free := takenNames(outputs...)
	relation := relationName(c.node.child("from_table"))
	known := map[string]*state{}
	add := func(name func() string, m merge, value tree) string {
		sig := string(m) + value.signature(relation)
		if s := known[sig]; s != nil {
			return s.name
		}
		s := &state{name: name(), value: value, merge: m}
		known[sig] = s
		out = append(out, s)
		return s.name
	}
	for i := range c.items {
		it := &c.items[i]
		if it.call == nil {
			continue
		}
		own := func() string { return it.name }
		suffixed := func(suffix string) func() string {
			return func() string { return free.stored(it.name, suffix, i+1) }
		}
		switch it.call.function {
		case "count":
			it.call.count = add(own, mergeSum, as(it.node, it.node.function()))
		case "sum", "avg":
			total := fill(forms.zero, map[string]tree{"x": as(it.node, "sum")})
			it.call.sum = add(suffixed("__s"), mergeSum, total)
			it.call.count = add(suffixed("__n"), mergeSum, as(it.node, "count"))
		case "min":
			it.call.value = add(own, mergeMin, as(it.node, "min"))
		default:
			it.call.value = add(own, mergeMax, as(it.node, "max"))
		}
	}
	return out
}

// find is the state of a name.
func find(states []*state, name string) *state {
	i := slices.IndexFunc(states, func(s *state) bool { return s.name == name })
	if i < 0 {
		return &state{}
	}
	return states[i]
}

// exact says that a total does not depend on the order of its records.
func exact(states []*state, name string) bool { return find(states, name).pg == "numeric" }

// outputs are the stored columns of PARTIAL with their DuckDB types: keys in the order of the query, then states.
func (c *compiler) outputs(states []*state) []column {
	var out []column
	for _, it := range c.items {
		if it.key {
			out = append(out, column{it.name, it.duck})
		}
	}
	for _, s := range states {
		out = append(out, column{s.name, s.duck})
	}
	return out
}

// layout is the stored form.
func (c *compiler) layout(states []*state) job.Layout {
	l := job.Layout{Shape: job.Rollup, Where: c.spec.Serve.Where}
	for _, it := range c.items {
		if it.key {
			l.Keys = append(l.Keys, job.KeyColumn{Name: it.name, Type: stored(it.pg), Time: timeKey(it.pg)})
		}
		l.View = append(l.View, c.viewColumn(it, states))
	}
	slices.SortStableFunc(l.Keys, func(a, b job.KeyColumn) int {
		switch {
		case a.Time == b.Time:
			return 0
		case a.Time:
			return -1
		default:
			return 1
		}
	})
	for _, s := range states {
		l.States = append(l.States, job.StateColumn{Name: s.name, Type: stored(s.pg), Combine: s.combine(), Aggregate: s.aggregate()})
	}
	l.View = append(l.View, c.computed(l)...)
	c.checkServe(l)
	return l
}

func (c *compiler) viewColumn(it item, states []*state) job.ViewColumn {
	if it.key {
		return job.ViewColumn{Name: it.name, Type: it.pg, Finish: "s." + ident(it.name), StoredAs: "key", Exact: true, Key: true}
	}
	isExact := true
	if it.call.sum != "" {
		isExact = exact(states, it.call.sum)
	}
	return job.ViewColumn{
		Name: it.name, Type: it.pg, StoredAs: it.call.storedAs(), Exact: isExact,
		Finish: it.call.finish(find(states, it.call.sum).pg),
	}
}
