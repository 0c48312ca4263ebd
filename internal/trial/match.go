package trial

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/mergecheck"
)

// Kind tells how a row differs.
type Kind string

// The kinds of difference.
const (
	Missing    Kind = "missing"    // expected, but not in the result
	Unexpected Kind = "unexpected" // in the result, but not expected
	Changed    Kind = "changed"    // same key, other values
)

// Difference is one row that differs. A nil value is NULL.
type Difference struct {
	Kind    Kind               `json:"kind"`
	Row     map[string]*string `json:"row"`     // the expected row, or the unexpected one
	Columns map[string]Values  `json:"columns"` // columns of a changed row that differ
}

// Values holds the expected and the actual value of one column; nil is NULL.
type Values struct {
	Want *string `json:"want"`
	Got  *string `json:"got"`
}

// expected is one expected row: values by index of the result column, only for the columns that the test names.
type expected map[int]*string

// expect converts the expected rows to the engine's spelling. It leaves out view columns that this engine does not
// compute and records them as unseen.
func (r *run) expect(columns []job.ViewColumn, convert func(int, any) (string, error)) ([]expected, error) {
	var out []expected
	left := map[string]bool{}
	for n, row := range r.test.Expect {
		e := expected{}
		for _, name := range slices.Sorted(maps.Keys(row)) {
			i := slices.IndexFunc(columns, func(c job.ViewColumn) bool { return c.Name == name })
			switch {
			case i < 0 && r.computed(name):
				left[name] = true
				continue
			case i < 0:
				return nil, failf("expect[%d] names column %q, which the result does not have; its columns are %s", n, name,
					nameList(columns))
			case row[name] == nil:
				e[i] = nil
				continue
			}
			text, err := convert(i, row[name])
			if err != nil {
				return nil, failf("expect[%d]: %s is not a value of column %q (%s)", n, plainText(row[name], ""), name,
					columns[i].Type)
			}
			e[i] = &text
		}
		out = append(out, e)
	}
	r.unseen(left)
	return out, nil
}

func (r *run) computed(name string) bool {
	return slices.ContainsFunc(r.compiled.Layout.View, func(v job.ViewColumn) bool { return v.Computed && v.Name == name })
}

// unseen records which columns and conditions only PostgreSQL can evaluate.
func (r *run) unseen(columns map[string]bool) {
	if r.result.Engine == PostgreSQL {
		return
	}
	parts := slices.Sorted(maps.Keys(columns))
	for i := range parts {
		parts[i] = "serve.columns." + parts[i]
	}
	if r.spec.Serve.Where != "" {
		parts = append(parts, "serve.where")
	}
	r.result.Unseen = strings.Join(parts, ", ")
}

func nameList(columns []job.ViewColumn) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	return strings.Join(names, ", ")
}

// judge matches the expected rows with the actual ones and records the differences.
func (r *run) judge(columns []job.ViewColumn, want []expected, got []mergecheck.Row) {
	r.result.Rows = len(got)
	of := match(len(want), len(got), func(w, g int) bool { return fits(columns, want[w], got[g]) })
	taken := make([]bool, len(got))
	for _, g := range of {
		if g >= 0 {
			taken[g] = true
		}
	}
	for w, g := range of {
		if g >= 0 {
			continue
		}
		near := -1
		for i := range got {
			if !taken[i] && sameKey(columns, want[w], got[i]) {
				near = i
				break
			}
		}
		if near >= 0 {
			taken[near] = true
			r.result.Differences = append(r.result.Differences, changed(columns, want[w], got[near]))
			continue
		}
		r.result.Differences = append(r.result.Differences, Difference{
			Kind: Missing, Row: want[w].named(columns), Columns: map[string]Values{},
		})
	}
	for g, used := range taken {
		// Without PostgreSQL, serve.where may hide a row that is not expected.
		if !used && (r.result.Engine == PostgreSQL || r.spec.Serve.Where == "") {
			r.result.Differences = append(r.result.Differences, Difference{
				Kind: Unexpected, Row: named(columns, got[g]), Columns: map[string]Values{},
			})
		}
	}
	r.result.OK = len(r.result.Differences) == 0
}

// match assigns to each of n left items a distinct right item that ok allows, as many as possible (augmenting paths),
// or -1.
func match(n, m int, ok func(left, right int) bool) []int {
	of, by := make([]int, n), make([]int, m)
	for i := range by {
		by[i] = -1
	}
	var seen []bool
	var try func(left int) bool
	try = func(left int) bool {
		for right := range m {
			if seen[right] || !ok(left, right) {
				continue
			}
			seen[right] = true
			if by[right] < 0 || try(by[right]) {
				by[right] = left
				return true
			}
		}
		return false
	}
	for left := range n {
		of[left], seen = -1, make([]bool, m)
		try(left)
	}
	for right, left := range by {
		if left >= 0 {
			of[left] = right
		}
	}
	return of
}

func fits(columns []job.ViewColumn, want expected, got mergecheck.Row) bool {
	for i, w := range want {
		if !same(columns[i], w, got[i]) {
			return false
		}
	}
	return true
}

// sameKey reports whether the row has the expected key. It is false if the expected row names no key column.
func sameKey(columns []job.ViewColumn, want expected, got mergecheck.Row) bool {
	keys, keyed := 0, false
	for i, c := range columns {
		if !c.Key {
			continue
		}
		keyed = true
		w, named := want[i]
		if named && !same(c, w, got[i]) {
			return false
		}
		if named {
			keys++
		}
	}
	return keys > 0 || !keyed
}

func same(c job.ViewColumn, a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b || mergecheck.SameNumber(c, *a, *b)
}

func changed(columns []job.ViewColumn, want expected, got mergecheck.Row) Difference {
	d := Difference{Kind: Changed, Row: want.named(columns), Columns: map[string]Values{}}
	for i, w := range want {
		if !same(columns[i], w, got[i]) {
			d.Columns[columns[i].Name] = Values{Want: w, Got: got[i]}
		}
	}
	return d
}

func (e expected) named(columns []job.ViewColumn) map[string]*string {
	out := map[string]*string{}
	for i, v := range e {
		out[columns[i].Name] = v
	}
	return out
}

func named(columns []job.ViewColumn, row mergecheck.Row) map[string]*string {
	out := map[string]*string{}
	for i, c := range columns {
		out[c.Name] = row[i]
	}
	return out
}

// plainText returns a value of a test as PostgreSQL's input syntax for a type.
func plainText(v any, typ string) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return fmt.Sprint(v)
	case []any:
		if strings.HasSuffix(typ, "[]") {
			return arrayText(v)
		}
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

func arrayText(list []any) string {
	items := make([]string, len(list))
	for i, v := range list {
		if v == nil {
			items[i] = "NULL"
			continue
		}
		items[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(plainText(v, "")) + `"`
	}
	return "{" + strings.Join(items, ",") + "}"
}
