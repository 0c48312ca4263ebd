package query

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pgtest"
)

// mergeRig is a test database and a DuckDB engine: tests merge parts in one and run queries in the other.
type mergeRig struct {
	t    *testing.T
	pg   *pgx.Conn
	duck *Session
}

// newMergeRig makes a database whose own order of texts is not that of bytes, so that a missing COLLATE shows.
// The test runs beside others.
func newMergeRig(t *testing.T) *mergeRig {
	t.Helper()
	t.Parallel()
	ctx := context.WithoutCancel(t.Context())
	config, err := pgx.ParseConfig(pgtest.Empty(t))
	if err != nil {
		t.Fatal(err)
	}
	connect := func(database string) *pgx.Conn {
		t.Helper()
		c := config.Copy()
		c.Database = database
		conn, err := pgx.ConnectConfig(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	outer, name := connect(config.Database), config.Database+"_en"
	t.Cleanup(func() { _ = outer.Close(ctx) })
	if _, err := outer.Exec(ctx, "CREATE DATABASE "+ident(name)+" TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C' LOCALE_PROVIDER icu ICU_LOCALE 'en-US'"); err != nil {
		t.Fatal(err)
	}
	l := &mergeRig{t: t, pg: connect(name), duck: open(t, Config{})}
	t.Cleanup(func() {
		_ = l.pg.Close(ctx)
		if _, err := outer.Exec(ctx, "DROP DATABASE "+ident(name)); err != nil {
			t.Error(err)
		}
	})
	if _, err := l.pg.Exec(ctx, `CREATE FUNCTION counted(text[]) RETURNS jsonb LANGUAGE sql AS 'SELECT CASE WHEN count(*) <= 5 THEN jsonb_object_agg(v, n) END
		FROM (SELECT v, count(*) AS n FROM unnest($1) AS u(v) WHERE v IS NOT NULL GROUP BY v) AS c HAVING count(*) > 0'`); err != nil {
		t.Fatal(err)
	}
	if got := l.query("SELECT ('a' < 'B')::text"); got[0][0] != "true" {
		t.Fatal("the database orders texts by bytes")
	}
	return l
}

func (l *mergeRig) exec(sql string, args ...any) {
	l.t.Helper()
	if _, err := l.pg.Exec(l.t.Context(), sql, args...); err != nil {
		l.t.Fatalf("%v\n%s", err, sql)
	}
}

// query gives every row as texts.
func (l *mergeRig) query(sql string, args ...any) [][]string {
	l.t.Helper()
	rows, err := l.pg.Query(l.t.Context(), sql, args...)
	if err != nil {
		l.t.Fatalf("%v\n%s", err, sql)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]string, error) {
		var line []string
		for _, v := range row.RawValues() {
			text := null
			if v != nil {
				text = string(v)
			}
			line = append(line, text)
		}
		return line, nil
	})
	if err != nil {
		l.t.Fatalf("%v\n%s", err, sql)
	}
	return out
}

// shards splits records into 1 to 6 parts at random, some of them empty.
func shards(r *rand.Rand, records []record) [][]record {
	out := make([][]record, 1+r.IntN(6))
	for _, rec := range records {
		i := r.IntN(len(out))
		out[i] = append(out[i], rec)
	}
	return out
}

// tables makes the version table and the staging table of a layout.
func (l *mergeRig) tables(layout job.Layout) {
	names, types := layout.StagedColumns()
	var columns, keys []string
	for i := range names {
		columns = append(columns, ident(names[i])+" "+types[i])
		if i < len(layout.Keys) {
			keys = append(keys, ident(names[i]))
		}
	}
	l.exec("DROP TABLE IF EXISTS v, staged")
	l.exec("CREATE TABLE v (" + strings.Join(columns, ", ") + ")")
	l.exec("CREATE UNIQUE INDEX ON v (" + unique(keys) + ") NULLS NOT DISTINCT")
	l.exec("CREATE TABLE staged (LIKE v)")
}

// unique returns the column list of a version table's unique index.
func unique(keys []string) string {
	if len(keys) == 0 {
		return "(true)"
	}
	return strings.Join(keys, ", ")
}

// mergedBatch is what a commit of rows is made of.
type mergedBatch struct {
	list     string   // of the stored columns
	keys     []string // those of them, quoted
	selected string   // a SELECT of the rows
	set      string   // of ON CONFLICT
	args     []any
}

func batchOf(layout job.Layout, rows [][]*string) (b mergedBatch) {
	names, types := layout.StagedColumns()
	var columns, casts, states, combined, arriving, params []string
	b.args = make([]any, len(names))
	for i, name := range names {
		columns = append(columns, ident(name))
		casts = append(casts, fmt.Sprintf("e.%s::%s", ident(name), strings.TrimSuffix(types[i], collateC)))
		params = append(params, fmt.Sprintf("$%d::text[]", i+1))
		if i < len(layout.Keys) {
			b.keys = append(b.keys, ident(name))
		}
		values := make([]*string, len(rows))
		for j := range rows {
			values[j] = rows[j][i]
		}
		b.args[i] = values
	}
	for _, s := range layout.States {
		states, combined, arriving = append(states, ident(s.Name)), append(combined, s.Combine), append(arriving, "excluded."+ident(s.Name))
	}
	b.list = strings.Join(columns, ", ")
	b.selected = "SELECT " + strings.Join(casts, ", ") + " FROM unnest(" + strings.Join(params, ", ") + ") AS e (" + b.list + ")"
	b.set = "(" + strings.Join(states, ", ") + ") = (SELECT " + strings.Join(combined, ", ") + " FROM (SELECT " + strings.Join(arriving, ", ") + ") AS e)"
	return b
}

// upsert merges one part as a live commit does, and stages it as a segment does.
func (l *mergeRig) upsert(layout job.Layout, rows [][]*string) {
	b := batchOf(layout, rows)
	l.exec("INSERT INTO staged ("+b.list+") "+b.selected, b.args...)
	if layout.Shape == job.Latest {
		return // one row a key is for speedlayer's statement to keep
	}
	l.exec("INSERT INTO v AS t ("+b.list+") "+b.selected+" ON CONFLICT ("+unique(b.keys)+") DO UPDATE SET "+b.set, b.args...)
}

// served reads table as the view of a rollup without keys does, merging its rows.
func (l *mergeRig) served(layout job.Layout, table string) [][]string {
	var inner, keys, outer []string
	for _, k := range layout.Keys {
		inner, keys = append(inner, "e."+ident(k.Name)), append(keys, "e."+ident(k.Name))
	}
	for _, s := range layout.States {
		inner = append(inner, s.Aggregate+" AS "+ident(s.Name))
	}
	for _, v := range layout.View {
		outer = append(outer, "("+v.Finish+")::"+v.Type+"::text")
	}
	sql := "SELECT " + strings.Join(outer, ", ") + " FROM (SELECT " + strings.Join(inner, ", ") + " FROM " + table + " e"
	if len(keys) > 0 {
		sql += " GROUP BY " + strings.Join(keys, ", ")
	}
	sql += ") s"
	if layout.Hidden != "" {
		sql += " WHERE NOT (" + layout.Hidden + ")"
	}
	if layout.Having != "" {
		sql += " WHERE " + layout.Having
	}
	return sorted(l.query(sql + " " + layout.Top))
}

// plain reads the version table as the view of a query with keys does.
func (l *mergeRig) plain(layout job.Layout) [][]string {
	var outer []string
	for _, v := range layout.View {
		outer = append(outer, "("+v.Finish+")::text")
	}
	where := ""
	if layout.Having != "" {
		where = " WHERE " + layout.Having
	}
	return sorted(l.query("SELECT " + strings.Join(outer, ", ") + " FROM v s" + where + " " + layout.Top))
}

// typed checks that FINISH gives the type that the layout names.
func (l *mergeRig) typed(layout job.Layout) {
	l.t.Helper()
	var columns []string
	for i, v := range layout.View {
		columns = append(columns, fmt.Sprintf("%s AS c%d", v.Finish, i))
	}
	l.exec("DROP VIEW IF EXISTS finished")
	l.exec("CREATE VIEW finished AS SELECT " + strings.Join(columns, ", ") + " FROM v s")
	got := l.query("SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'finished'::regclass ORDER BY attnum")
	l.exec("DROP VIEW finished")
	for i, v := range layout.View {
		if got[i][0] != v.Type {
			l.t.Errorf("column %s: FINISH is of type %s, the layout says %s", v.Name, got[i][0], v.Type)
		}
	}
}

// once runs the query over all records in one pass, its values spelled as PostgreSQL spells them.
func (l *mergeRig) once(c *Compiled, sql string, records []record) [][]string {
	l.t.Helper()
	described := l.describe(c, sql)
	var items []string
	for i, v := range c.Layout.View {
		items = append(items, postgresText("q."+ident(v.Name), described[i].typ))
	}
	rows := mustRows(l.t, l.duck, "SELECT "+strings.Join(items, ", ")+" FROM ("+sql+") q", reader(l.t, c.source, c.Fields, records, 100))
	var casts, params []string
	args := make([]any, len(items))
	for i, v := range c.Layout.View {
		params = append(params, fmt.Sprintf("$%d::text[]", i+1))
		casts = append(casts, fmt.Sprintf("c%d::%s::text", i, v.Type))
		values := make([]*string, len(rows))
		for j := range rows {
			if rows[j][i] != null {
				values[j] = &rows[j][i]
			}
		}
		args[i] = values
	}
	names := make([]string, len(items))
	for i := range names {
		names[i] = "c" + strconv.Itoa(i)
	}
	return sorted(l.query("SELECT "+strings.Join(casts, ", ")+" FROM unnest("+strings.Join(params, ", ")+") AS u ("+strings.Join(names, ", ")+")", args...))
}

func (l *mergeRig) describe(c *Compiled, sql string) []column {
	l.t.Helper()
	rows := mustRows(l.t, l.duck, "SELECT column_name, column_type FROM (DESCRIBE "+sql+")", reader(l.t, c.source, c.Fields, nil, 1))
	out := make([]column, len(rows))
	for i, r := range rows {
		out[i] = column{r[0], r[1]}
	}
	return out
}

func (l *mergeRig) land(c *Compiled, records []record) [][]*string {
	l.t.Helper()
	rows := mustRows(l.t, l.duck, c.Land(), reader(l.t, c.source, c.Fields, records, 7))
	out := make([][]*string, len(rows))
	for i, row := range rows {
		for j := range row {
			if row[j] == null {
				out[i] = append(out[i], nil)
			} else {
				out[i] = append(out[i], &row[j])
			}
		}
	}
	return out
}

func sorted(rows [][]string) [][]string {
	slices.SortFunc(rows, slices.Compare)
	return rows
}

// near compares two values: as text, or within 1e-9 relative when approximate.
func near(a, b string, exact bool) bool {
	if a == b {
		return true
	}
	if exact {
		return false
	}
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	if errX != nil || errY != nil {
		return false
	}
	return math.Abs(x-y) <= 1e-9*math.Max(1e6, math.Max(math.Abs(x), math.Abs(y)))
}

func (l *mergeRig) compare(what string, layout job.Layout, want, got [][]string) {
	l.t.Helper()
	want, got = unsigned(layout, want), unsigned(layout, got)
	ok := len(want) == len(got)
	for i := 0; ok && i < len(want); i++ {
		for j, v := range layout.View {
			ok = ok && near(want[i][j], got[i][j], v.Exact)
		}
	}
	if !ok {
		l.t.Fatalf("%s differs from the query run once (-once +%s):\n%s", what, what, cmp.Diff(want, got))
	}
}

// TestPartsMergedByPostgreSQLEqualTheQueryRunOnce checks for every query of the golden file, over random records split at
// random, that PARTIAL per part, MERGE in both of its forms and FINISH give the result of the query run once.
func TestPartsMergedByPostgreSQLEqualTheQueryRunOnce(t *testing.T) {
	l := newMergeRig(t)
	for _, q := range queriesOf(t, "rollups.sql") {
		t.Run(q.name, func(t *testing.T) {
			l.t = t
			c, err := Compile(t.Context(), parseJob(t, "job.yaml", jobText(q.text)+distinctMax))
			if err != nil {
				t.Fatal(err)
			}
			for seed := range uint64(4) {
				r := rand.New(rand.NewPCG(seed, 7))
				var records []record
				for i := range pick(r, 0, 3, 40, 300) {
					records = append(records, randomRecord(r, int32(r.IntN(5)), int64(i)))
				}
				if seed == 3 && !sumsDoubles(c.Layout) {
					weird(r, records)
				}
				l.hold(c, strings.TrimSuffix(strings.TrimSpace(q.text), ";"), r, records)
			}
		})
	}
}

// sumsDoubles reports whether the layout has a total of doubles, which depends on the order if there are infinities.
func sumsDoubles(l job.Layout) bool {
	return slices.ContainsFunc(l.View, func(v job.ViewColumn) bool { return !v.Exact })
}

// doublesApproximate is the layout with averages taken as approximate: the engine itself rounds them twice.
func doublesApproximate(l job.Layout) job.Layout {
	l.View = slices.Clone(l.View)
	for i := range l.View {
		l.View[i].Exact = l.View[i].Exact && l.View[i].Type != "double precision"
	}
	return l
}

func (l *mergeRig) hold(c *Compiled, text string, r *rand.Rand, records []record) {
	l.t.Helper()
	l.tables(c.Layout)
	l.typed(c.Layout)
	for _, part := range shards(r, records) {
		l.upsert(c.Layout, l.land(c, part))
	}
	want := l.once(c, c.Oracle, records)
	// Estimates are not those of the engine, and it knows no distinct_max, which histograms of texts exceed here.
	if c.prelude() == "" && !strings.Contains(text, "approx_") && !strings.Contains(text, "histogram(url)") {
		l.compare("the query as written", doublesApproximate(c.Layout), want, l.once(c, text, records))
	}
	l.compare("merged", c.Layout, want, l.served(c.Layout, "v"))
	l.compare("staged", c.Layout, want, l.served(c.Layout, "staged"))
	if len(c.Layout.Keys) > 0 {
		l.compare("served", c.Layout, want, l.plain(c.Layout))
	}
}
