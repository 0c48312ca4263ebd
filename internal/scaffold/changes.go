package scaffold

import (
	"fmt"
	"slices"
)

// envelope finds the place of Debezium's envelopes in the records: at the top, or below payload. It is nil if the
// records are something else.
func envelope(root *node) *node {
	for _, n := range []*node{root, root.index["payload"]} {
		if n == nil || n.index["op"] == nil || n.index["before"] == nil || n.index["after"] == nil ||
			n.index["source"] == nil {
			continue
		}
		op, before, after := n.index["op"], n.index["before"], n.index["after"]
		states := before.objects+after.objects > 0 && before.present() == before.objects && after.present() == after.objects
		if op.texts == op.present() && states {
			return n
		}
	}
	return nil
}

// alike gives two places the same members, with the values of both, so that their columns get the same names and types:
// in a topic of new rows every before is null.
func alike(a, b *node) {
	for _, count := range [][2]*int{
		{&a.objects, &b.objects},
		{&a.arrays, &b.arrays},
		{&a.texts, &b.texts},
		{&a.numbers, &b.numbers},
		{&a.booleans, &b.booleans},
	} {
		sum := *count[0] + *count[1]
		*count[0], *count[1] = sum, sum
	}
	for _, v := range b.values {
		if !slices.Contains(a.values, v) && len(a.values) < maxDistinct {
			a.values = append(a.values, v)
		}
	}
	b.values = slices.Clone(a.values)
	var names []string
	for _, c := range slices.Concat(a.children, b.children) {
		if !slices.Contains(names, c.name) {
			names = append(names, c.name)
		}
	}
	for _, name := range names {
		alike(a.child(name), b.child(name))
	}
}

// ledger counts the rows of the table that the changes are about: each change takes the row before it off, and adds the
// row after it. It is false if no field groups them.
func (d *draft) ledger() (plan, bool) {
	var group, measure *column
	for _, find := range []struct {
		to  **column
		get func() *column
	}{{&group, d.group}, {&measure, d.measure}} {
		all := d.columns
		d.columns = slices.DeleteFunc(slices.Clone(all), func(c *column) bool { return !d.holds("after", c) })
		*find.to = find.get()
		d.columns = all
	}
	if group == nil || d.before(group) == nil {
		return plan{}, false
	}
	name := columnName(group.path[len(group.path)-1:])
	removed, added := fmt.Sprintf("'k': %s, 'n': -1", d.before(group).Name), fmt.Sprintf("'k': %s, 'n': 1", group.Name)
	p := plan{
		items: []string{"entry.k AS " + name, "sum(entry.n) AS " + unique("records", map[string]bool{name: true})},
		keys:  []string{"1"}, where: "entry.k IS NOT NULL", suffix: "_totals", needs: []*column{group},
	}
	if measure != nil && d.before(measure) != nil {
		removed += fmt.Sprintf(", 'x': -%s", d.before(measure).Name)
		added += fmt.Sprintf(", 'x': %s", measure.Name)
		p.items = append(p.items, "sum(entry.x) AS total_"+columnName(measure.path[len(measure.path)-1:]))
		p.needs = append(p.needs, measure)
	}
	p.from = fmt.Sprintf("(\n    SELECT unnest([\n      {%s},\n      {%s}\n    ]) AS entry\n    FROM source\n  )",
		removed, added)
	return p, true
}

// holds reports whether a column is one of the state before or after the change.
func (d *draft) holds(state string, c *column) bool {
	at := len(d.changes.path)
	return len(c.path) > at+1 && c.path[at].Name == state
}

// before is the column before the change of one after it; nil: there is none.
func (d *draft) before(after *column) *column {
	path := slices.Clone(after.path)
	path[len(d.changes.path)].Name = "before"
	i := slices.IndexFunc(d.columns, func(c *column) bool { return slices.Equal(c.path, path) && c.label == after.label })
	if i < 0 {
		return nil
	}
	return d.columns[i]
}
