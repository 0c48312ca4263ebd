package speedlayer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
	"github.com/kappactl/kappactl/internal/query"
	"github.com/kappactl/kappactl/serving"
)

// counts is the layout of: SELECT user, hour, count(*) AS n, max(v) AS top … GROUP BY user, hour.
func counts() job.Layout {
	return job.Layout{
		Shape: job.Rollup,
		Keys: []job.KeyColumn{
			{Name: "hour", Type: "timestamp with time zone", Time: true},
			{Name: "user", Type: `text COLLATE "C"`},
		},
		States: []job.StateColumn{
			{Name: "n", Type: "bigint", Combine: `t."n" + e."n"`, Aggregate: `sum(e."n")::bigint`},
			{Name: "top", Type: "numeric(38,2)", Combine: `greatest(t."top", e."top")`, Aggregate: `max(e."top")`},
		},
	}
}

// total is the layout of: SELECT count(*) AS n.
func total() job.Layout {
	return job.Layout{
		Shape:  job.Rollup,
		States: []job.StateColumn{{Name: "n", Type: "bigint", Combine: `t."n" + e."n"`, Aggregate: `sum(e."n")::bigint`}},
	}
}

// at is the version of a layout in schema public.
func at(ref job.Ref, l job.Layout) job.Version {
	return job.Version{Ref: ref, Schema: "public", Layout: l}
}

// newVersion writes the rows of a job and a version and makes its table with the unique index, as the other packages do.
func newVersion(t testing.TB, pool *pg.Pool, ref job.Ref, l job.Layout, phase job.Phase, spec string) {
	t.Helper()
	if spec == "" {
		spec = "{}"
	}
	exec(t, pool, `INSERT INTO kappactl.job (name, view_schema, view_name) VALUES (@job, 'public', @job) ON CONFLICT DO NOTHING`, refArgs(ref))
	args := refArgs(ref)
	args["phase"], args["spec"], args["layout"], args["dialect"] = string(phase), spec, mustJSON(t, l), query.Dialect
	exec(t, pool, `INSERT INTO kappactl.version (job, number, hash, spec, layout, dialect, engine, phase)
		VALUES (@job, @number, 'x', @spec::jsonb, @layout::jsonb, @dialect, 'test', @phase)`, args)
	if l.Lambda {
		tables := serving.New(serving.Config{})
		if err := errors.Join(tables.Create(t.Context(), pool, at(ref, l)), tables.Index(t.Context(), pool, at(ref, l))); err != nil {
			t.Fatal(err)
		}
		return
	}
	names, types := l.StagedColumns()
	columns := make([]string, len(names))
	for i, n := range names {
		columns[i] = pg.Ident(n) + " " + types[i]
	}
	table := pg.Ident("public", ref.Table())
	exec(t, pool, fmt.Sprintf("CREATE TABLE %s (%s)", table, strings.Join(columns, ", ")), nil)
	exec(t, pool, fmt.Sprintf("CREATE UNIQUE INDEX ON %s %s NULLS NOT DISTINCT", table, pg.UniqueKey(l.KeyNames())), nil)
}

func exec(t testing.TB, pool *pg.Pool, sql string, args pgx.NamedArgs) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, args); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// inTx runs f in a transaction that must commit.
func inTx(t testing.TB, pool *pg.Pool, f func(tx *pg.Tx) error) {
	t.Helper()
	if err := pool.ReadCommitted(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

// lines are the rows of a query, each as text.
func lines(t testing.TB, pool *pg.Pool, sql string) []string {
	t.Helper()
	for tries := 0; ; tries++ {
		out, err := readLines(t.Context(), pool, sql)
		if pg.Unreachable(err) && tries < 20 {
			continue // the test ended a session that had gone back to the pool; there are fewer than 20
		}
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return out
	}
}

func readLines(ctx context.Context, pool *pg.Pool, sql string) ([]string, error) {
	rows, err := pool.Query(ctx, "SELECT q::text FROM ("+sql+") AS q")
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func topicID(b byte) (id job.TopicID) {
	id[0], id[15] = b, 1
	return id
}

func frozen(topic byte, partition int32, from, to, split int64) job.Frozen {
	return job.Frozen{
		Partition: job.Partition{Topic: "t" + string('0'+rune(topic)), TopicID: topicID(topic), ID: partition},
		Range:     job.Range{From: from, To: to}, LeaderEpoch: 3, SplitAt: split,
	}
}

func fresh(t testing.TB, l job.Layout, phase job.Phase) (*pg.Pool, job.Ref) {
	t.Helper()
	pool, _ := pgtest.New(t)
	ref := job.Ref{Job: "pageviews", Number: 1}
	newVersion(t, pool, ref, l, phase, "")
	return pool, ref
}
