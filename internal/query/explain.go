package query

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
)

// landed is the position of an output column, or of a filter, in the statement of Land.
type landed struct {
	at   int
	name string // of the column in the query; empty for a filter
}

// landedAt finds the columns of the query in the statement of Land. A state is attributed to the first column that
// needs it.
func (c *compiler) landedAt(ctx context.Context, land string, states []*state) ([]landed, error) {
	statements, err := c.session.parse(ctx, land)
	if err != nil {
		return nil, err
	}
	of := map[string]string{}
	for _, s := range states {
		of[s.name] = s.of.name
	}
	var out []landed
	each(statements[0], func(n tree) bool {
		for _, e := range n.list("select_list") {
			if at := firstPlace(e); at >= 0 && e.alias() != "" {
				out = append(out, landed{begins(land, at), cmp.Or(of[e.alias()], e.alias())})
			}
		}
		for _, g := range n.list("group_expressions") { // a key fails at its group expression
			if i, ok := g.integer(); ok && i <= len(n.list("select_list")) && g.at() >= 0 {
				out = append(out, landed{g.at(), n.list("select_list")[i-1].alias()})
			}
		}
		if where := n.child("where_clause"); where != nil {
			out = append(out, landed{at: begins(land, firstPlace(where))})
		}
		return true
	})
	slices.SortFunc(out, func(a, b landed) int { return cmp.Compare(a.at, b.at) })
	return out, nil
}

// begins returns the start of the expression around a place of a statement. DuckDB does not report where a cast starts.
func begins(statement string, at int) int {
	before := statement[:max(at, 0)]
	start := 0
	for _, mark := range []string{"SELECT ", "WHERE ", ", "} {
		start = max(start, strings.LastIndex(before, mark)+len(mark))
	}
	return min(start, max(at, 0))
}

// Explain formats an *ExecError of Land for people: the query's column, DuckDB's message and a fix.
func (c *Compiled) Explain(err error) string {
	var exec *ExecError
	if !errors.As(err, &exec) {
		return err.Error()
	}
	text := exec.Error()
	if at := c.position(exec.Err.Error()); at >= 0 {
		i, _ := slices.BinarySearchFunc(c.landed, at+1, func(l landed, at int) int { return cmp.Compare(l.at, at) })
		switch {
		case i == 0:
		case c.landed[i-1].name == "":
			text = "WHERE: " + text
		case !strings.HasPrefix(c.landed[i-1].name, ownPrefix):
			text = named(c.landed[i-1].name, text)
		}
	}
	if strings.Contains(text, "Conversion Error") {
		text += "; TRY_CAST gives NULL where a value does not convert"
	}
	return text
}

// position returns the byte offset in Land that a message of DuckDB points to, or -1. The message contains an excerpt
// of the statement and a caret below it.
func (c *Compiled) position(message string) int {
	const label = "LINE 1: "
	_, rest, found := strings.Cut(message, label)
	lines := strings.Split(rest, "\n")
	if !found || len(lines) < 2 {
		return -1
	}
	excerpt, caret := lines[0], strings.IndexByte(lines[1], '^')-len(label)
	if cut, is := strings.CutPrefix(excerpt, "..."); is {
		excerpt, caret = cut, caret-len("...")
	}
	excerpt = strings.TrimSuffix(excerpt, "...")
	land := c.Land()
	at := strings.Index(land, excerpt)
	if at < 0 || caret < 0 || at != strings.LastIndex(land, excerpt) {
		return -1
	}
	return at + caret
}
