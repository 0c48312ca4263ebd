package query

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/serving"
)

// layered reads records through both layers of a version of mode lambda as its view does: some are in the live generation, some in its
// epoch and in later ones. Generation 0 and epoch 0, which are still there, hold some twice.
func (l *mergeRig) layered(c *Compiled, r *rand.Rand, records []record) [][]string {
	l.t.Helper()
	layout := c.Layout
	layout.Lambda = true
	v := job.Version{Ref: job.Ref{Job: "p", Number: 1}, Schema: "public", Layout: layout}
	l.layers(v)
	var batch [][]*string
	for _, part := range shards(r, records) {
		rows := l.land(c, part)
		switch epoch := r.IntN(5); epoch {
		case 0, 1, 2: // twice into the older layer, and a later batch may meet the same keys
			l.epoch(v, rows, 0)
			batch = append(batch, rows...)
		default:
			l.epoch(v, rows, epoch-2)
		}
	}
	l.generation(v, 0, batch)
	l.generation(v, 1, batch)
	items := make([]string, len(layout.View))
	for i, column := range layout.View {
		items[i] = fmt.Sprintf("q.%s::%s::text", ident(column.Name), column.Type)
	}
	return sorted(l.query("SELECT " + strings.Join(items, ", ") + " FROM (" + serving.New(serving.Config{}).Select(v) + ") AS q"))
}

// layers makes the tables of both layers, with generations 0 and 1, of which 1 is live.
func (l *mergeRig) layers(v job.Version) {
	l.t.Helper()
	names, types := v.Layout.StagedColumns()
	var columns, key []string
	for i := range names {
		columns = append(columns, ident(names[i])+" "+types[i])
		if i < len(v.Layout.Keys) {
			key = append(key, ident(names[i]))
		}
	}
	stored := strings.Join(columns, ", ")
	for _, sql := range []string{
		"DROP TABLE IF EXISTS p__v1, p__v1_batch, p__v1_gen, merging",
		"CREATE TABLE p__v1 (" + stored + ", _epoch integer NOT NULL)",
		"CREATE UNIQUE INDEX ON p__v1 (" + strings.Join(append(key, "_epoch"), ", ") + ") NULLS NOT DISTINCT",
		"CREATE TABLE p__v1_batch (" + stored + ", _generation integer NOT NULL) PARTITION BY LIST (_generation)",
		"CREATE TABLE p__v1_g0 PARTITION OF p__v1_batch FOR VALUES IN (0)",
		"CREATE TABLE p__v1_g1 PARTITION OF p__v1_batch FOR VALUES IN (1)",
		"CREATE TABLE p__v1_gen AS SELECT 1 AS generation",
		"CREATE OR REPLACE FUNCTION p__v1_known() RETURNS integer LANGUAGE sql STABLE AS 'SELECT 1'",
		"CREATE TABLE merging (" + stored + ")",
	} {
		if v.Layout.Shape == job.Rows && strings.HasPrefix(sql, "CREATE UNIQUE") {
			continue
		}
		l.exec(sql)
	}
}

// epoch merges rows into one epoch of the speed layer as a commit does.
func (l *mergeRig) epoch(v job.Version, rows [][]*string, epoch int) {
	l.t.Helper()
	b := batchOf(v.Layout, rows)
	sql := fmt.Sprintf("INSERT INTO p__v1 AS t (%s, _epoch) %s", b.list, strings.Replace(b.selected, " FROM unnest", fmt.Sprintf(", %d FROM unnest", epoch), 1))
	if v.Layout.Shape != job.Rows {
		sql += " ON CONFLICT (" + strings.Join(append(b.keys, "_epoch"), ", ") + ") DO UPDATE SET " + b.set
	}
	l.exec(sql, b.args...)
}

// generation merges rows as the end of a batch run does.
func (l *mergeRig) generation(v job.Version, generation int, rows [][]*string) {
	l.t.Helper()
	b := batchOf(v.Layout, rows)
	l.exec("TRUNCATE merging")
	l.exec("INSERT INTO merging ("+b.list+") "+b.selected, b.args...)
	items, group := []string{"e.*"}, ""
	if v.Layout.Shape != job.Rows {
		items = nil
		for _, k := range b.keys {
			items = append(items, "e."+k)
		}
		for _, s := range v.Layout.States {
			items = append(items, s.Aggregate)
		}
		if len(b.keys) > 0 {
			group = " GROUP BY e." + strings.Join(b.keys, ", e.")
		}
	}
	l.exec(fmt.Sprintf("INSERT INTO p__v1_batch (%s, _generation) SELECT %s, %d FROM merging AS e%s", b.list, strings.Join(items, ", "), generation, group))
}
