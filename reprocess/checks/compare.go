package checks

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// maxExamples is the largest number of differences in a Diff.
const maxExamples = 10

// floatTolerance is the largest difference between two doubles, relative to the larger one, that counts as equal. Sums
// of doubles depend on the order of addition.
const floatTolerance = 1e-9

// side is one of two compared relations: its rows as readers see them, with the columns that identify them.
type side struct {
	layout job.Layout
	rows   string // a SELECT
}

// commonColumns returns the columns by which two versions can be compared: the keys, and the other common columns. It
// returns a *job.Refusal if the keys differ.
func commonColumns(a, b job.Layout) (keys, values []string, err error) {
	a, b = a.Audited(), b.Audited()
	for _, pair := range [][2]job.Layout{{a, b}, {b, a}} {
		for _, v := range pair[0].View {
			same := func(w job.ViewColumn) bool { return w.Key && w.Name == v.Name && w.Type == v.Type }
			if v.Key && !slices.ContainsFunc(pair[1].View, same) {
				return nil, nil, &job.Refusal{
					Code: job.ExitUsage, Cause: fmt.Sprintf("the versions have different keys: %q is not a key of both", v.Name),
					Next: "compare them with SQL",
				}
			}
		}
	}
	for _, v := range a.View {
		switch {
		case v.Key:
			keys = append(keys, v.Name)
		case slices.ContainsFunc(b.View, func(w job.ViewColumn) bool { return w.Name == v.Name && !w.Key }):
			values = append(values, v.Name)
		}
	}
	return keys, values, nil
}

// comparison builds the SQL that compares two sides key by key.
type comparison struct {
	keys    []string
	columns []comparedColumn
	from    string // a FULL JOIN of a and b
	differs string // condition: two rows of one key differ
	names   string // text[]: the columns that differ
}

type comparedColumn struct {
	name string
	test string // condition: the column differs in a and b
}

// compare compares two sides in the transaction's snapshot. It counts the keys that only one side has and the keys with
// other values, and collects examples. How values are compared depends on the types that PostgreSQL reports, because
// serve.columns does not state them.
func compare(ctx context.Context, tx pgx.Tx, ask queryFunc, a, b side, how job.DiffHow, out *Diff) error {
	keys, values, err := commonColumns(a.layout, b.layout)
	if err != nil {
		return err
	}
	if err := knows(values, how); err != nil {
		return err
	}
	// Without statistics on the keys, a merge join takes several times as long as a hash join.
	if _, err := tx.Exec(ctx, "SET LOCAL enable_mergejoin = off"); err != nil {
		return err
	}
	var types [2]map[string]uint32
	for i, s := range []side{a, b} {
		if types[i], err = columnTypes(ctx, tx, s.rows); err != nil {
			return err
		}
	}
	c := comparison{keys: keys}
	for _, name := range values {
		if slices.Contains(how.Ignore, name) || types[0][name] != types[1][name] {
			continue
		}
		n := len(c.columns) + 1
		test := differs(n, types[0][name], tolerance(how, name, types[0][name]))
		c.columns = append(c.columns, comparedColumn{name: name, test: test})
	}
	c.compose(a, b, how.Where)
	out.Keys, out.Columns, out.Where = keys, []string{}, how.Where
	for _, v := range c.columns {
		out.Columns = append(out.Columns, v.name)
	}
	return c.run(ctx, ask, out)
}

// knows refuses settings for columns that are not compared.
func knows(values []string, how job.DiffHow) error {
	for _, name := range append(slices.Sorted(maps.Keys(how.Tolerances)), how.Ignore...) {
		if !slices.Contains(values, name) {
			return &job.Refusal{
				Code: job.ExitUsage, Cause: fmt.Sprintf("%q is not a column whose values both versions have", name),
				Next: "name one of: " + strings.Join(values, ", "),
			}
		}
	}
	return nil
}

// columnTypes returns the types of a SELECT's columns by name.
func columnTypes(ctx context.Context, tx pgx.Tx, rows string) (map[string]uint32, error) {
	fields, err := fieldsOf(ctx, tx, rows)
	if err != nil {
		return nil, err
	}
	types := make(map[string]uint32, len(fields))
	for _, f := range fields {
		types[f.Name] = f.DataTypeOID
	}
	return types, nil
}

// The types for which equality alone is not sufficient.
const (
	oidJSON, oidXML, oidPoint        = 114, 142, 600
	oidInt8, oidInt2, oidInt4        = 20, 21, 23
	oidFloat4, oidFloat8, oidNumeric = 700, 701, 1700
)

// tolerance returns the largest difference between two values of a column, relative to the larger one, that counts as
// equal; 0 means none.
func tolerance(how job.DiffHow, column string, oid uint32) float64 {
	share, own := how.Tolerances[column]
	if !own {
		share = how.Tolerance
	}
	if share == 0 && !own && (oid == oidFloat4 || oid == oidFloat8) {
		return floatTolerance
	}
	return share
}

// differs returns the SQL condition that the nth compared column differs in a and b. The difference of two numbers with
// the same sign cannot overflow, and the larger of two different numbers is not zero.
func differs(n int, oid uint32, within float64) string {
	a, b := fmt.Sprintf("a.v%d", n), fmt.Sprintf("b.v%d", n)
	switch oid {
	case oidJSON, oidXML, oidPoint:
		return fmt.Sprintf("%s::text IS DISTINCT FROM %s::text", a, b)
	case oidInt2, oidInt4, oidInt8:
		if within > 0 {
			a, b = a+"::numeric", b+"::numeric"
		}
	case oidFloat4, oidFloat8, oidNumeric:
	default:
		within = 0
	}
	if within == 0 {
		return fmt.Sprintf("%s IS DISTINCT FROM %s", a, b)
	}
	return fmt.Sprintf(`CASE WHEN %[1]s IS NOT DISTINCT FROM %[2]s THEN false WHEN (%[1]s < 0) = (%[2]s < 0)
		THEN NOT abs(%[1]s - %[2]s) / greatest(abs(%[1]s), abs(%[2]s)) <= %[3]g ELSE true END`, a, b, within)
}

// compose builds the join. Group keys may be NULL. They are compared inside arrays, where NULL equals NULL and a hash
// join is possible.
func (c *comparison) compose(a, b side, where string) {
	if where != "" {
		where = fmt.Sprintf("\nWHERE (%s\n)", where)
	}
	items, on := []string{"true AS x", "q AS r"}, []string{}
	for i, k := range c.keys {
		items = append(items, fmt.Sprintf("q.%s AS k%d", pg.Ident(k), i+1))
		equal := "ARRAY[a.k%d] = ARRAY[b.k%[1]d]"
		if a.layout.Shape != job.Rollup && b.layout.Shape != job.Rollup {
			equal = "a.k%d = b.k%[1]d"
		}
		on = append(on, fmt.Sprintf(equal, i+1))
	}
	tests, names := []string{"false"}, []string{}
	for i, v := range c.columns {
		items = append(items, fmt.Sprintf("q.%s AS v%d", pg.Ident(v.name), i+1))
		tests = append(tests, v.test)
		names = append(names, fmt.Sprintf("CASE WHEN %s THEN %d END", v.test, i+1))
	}
	if len(on) == 0 {
		on = append(on, "true") // one row on each side
	}
	rows := func(s side) string {
		return fmt.Sprintf("SELECT %s FROM (%s\n) AS q%s", strings.Join(items, ", "), s.rows, where)
	}
	c.from = fmt.Sprintf("(%s) AS a FULL JOIN (%s) AS b ON %s", rows(a), rows(b), strings.Join(on, " AND "))
	c.differs = strings.Join(tests, " OR ")
	c.names = "ARRAY[" + strings.Join(names, ", ") + "]::integer[]"
}

// run counts the differences and reads examples if there are any.
func (c *comparison) run(ctx context.Context, ask queryFunc, out *Diff) error {
	rows, err := ask(ctx, fmt.Sprintf(`SELECT count(*) FILTER (WHERE b.x IS NULL), count(*) FILTER (WHERE a.x IS NULL),
		count(*) FILTER (WHERE a.x AND b.x AND (%s)), count(*) FROM %s`, c.differs, c.from),
		"a bigint, b bigint, changed bigint, n bigint")
	if err != nil {
		return err
	}
	var all int64
	counts := []any{&out.OnlyA, &out.OnlyB, &out.Changed, &all}
	if _, err := pgx.ForEachRow(rows, counts, func() error { return nil }); err != nil {
		return err
	}
	differ := out.OnlyA + out.OnlyB + out.Changed
	out.Same = all - differ
	if differ == 0 {
		return nil
	}
	return c.examples(ctx, ask, out)
}

// examples returns the first differences by key. Rows are converted to JSON after the selection.
func (c *comparison) examples(ctx context.Context, ask queryFunc, out *Diff) error {
	var keys, order []string
	for i := range c.keys {
		keys = append(keys, fmt.Sprintf("coalesce(a.k%d, b.k%[1]d) AS k%[1]d", i+1))
		order = append(order, fmt.Sprintf("k%d", i+1))
	}
	inner := strings.Join(append(keys, "a.r AS ra", "b.r AS rb", "a.x AND b.x AS both", c.names+" AS names"), ", ")
	by := ""
	if len(order) > 0 {
		by = " ORDER BY " + strings.Join(order, ", ")
	}
	rows, err := ask(ctx, fmt.Sprintf(`SELECT jsonb_build_array(%s)::text, to_jsonb(ra)::text, to_jsonb(rb)::text,
		array_remove(names, NULL)
		FROM (SELECT %s FROM %s WHERE a.x IS NULL OR b.x IS NULL OR %s%s LIMIT %d) AS found`,
		strings.Join(order, ", "), inner, c.from, c.differs, by, maxExamples), "k text, a text, b text, names integer[]")
	if err != nil {
		return err
	}
	var key string
	var a, b *string
	var changed []int
	_, err = pgx.ForEachRow(rows, []any{&key, &a, &b, &changed}, func() error {
		e := Example{Key: json.RawMessage(key), A: rawOrNull(a), B: rawOrNull(b), Columns: []string{}}
		switch {
		case a == nil:
			e.Kind = OnlyB
		case b == nil:
			e.Kind = OnlyA
		default:
			e.Kind = Changed
			for _, n := range changed {
				e.Columns = append(e.Columns, c.columns[n-1].name)
			}
		}
		out.Examples = append(out.Examples, e)
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
