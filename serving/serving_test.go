package serving

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var (
	store  = New(Config{})
	public = job.ViewName{Schema: "public", Name: "hits_by_url"}
	roles  atomic.Int64
)

func ref(n job.Number) job.Ref { return job.Ref{Job: "hits", Number: n} }

// hits is a rollup of views and milliseconds per url and hour.
func hits() job.Layout {
	return job.Layout{
		Shape: job.Rollup,
		Keys: []job.KeyColumn{
			{Name: "hour", Type: "timestamp with time zone", Time: true},
			{Name: "url", Type: `text COLLATE "C"`},
		},
		States: []job.StateColumn{
			{Name: "views", Type: "bigint", Combine: `t."views" + e."views"`, Aggregate: `sum(e."views")::bigint`},
			{Name: "total__s", Type: "numeric", Combine: `t."total__s" + e."total__s"`, Aggregate: `sum(e."total__s")`},
		},
		View: []job.ViewColumn{
			{Name: "url", Type: "text", Finish: `s."url"`, Key: true},
			{Name: "hour", Type: "timestamp with time zone", Finish: `s."hour"`, Key: true},
			{Name: "views", Type: "bigint", Finish: `s."views"`},
			{Name: "total", Type: "numeric(12,2)", Finish: `s."total__s"`},
		},
	}
}

// with adds an aggregate column of a type.
func with(l job.Layout, name, typ string) job.Layout {
	l.States = append(l.States, job.StateColumn{Name: name, Type: typ, Aggregate: `max(e.` + ident(name) + `)`})
	l.View = append(l.View, job.ViewColumn{Name: name, Type: typ, Finish: `s.` + ident(name)})
	return l
}

func exec(t *testing.T, db pg.DB, sql string, args ...any) {
	t.Helper()
	if _, err := db.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// texts runs a query of one text column.
func texts(t *testing.T, db pg.DB, sql string, args ...any) []string {
	t.Helper()
	rows, err := db.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return out
}

func text(t *testing.T, db pg.DB, sql string, args ...any) string {
	t.Helper()
	return strings.Join(texts(t, db, sql, args...), "\n")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantRefusal fails unless err is a refusal with that code whose text holds all parts.
func wantRefusal(t *testing.T, err error, code job.ExitCode, parts ...string) {
	t.Helper()
	var r *job.Refusal
	if !errors.As(err, &r) {
		t.Fatalf("got %v, want a refusal", err)
	}
	if r.Code != code {
		t.Errorf("exit %d, want %d: %s", r.Code, code, r.Cause)
	}
	if r.Next == "" {
		t.Errorf("the refusal says nothing about what to do: %s", r.Cause)
	}
	for _, p := range parts {
		if !strings.Contains(r.Cause+" "+r.Next, p) {
			t.Errorf("refusal %q / %q lacks %q", r.Cause, r.Next, p)
		}
	}
}

func version(r job.Ref, schema string, l job.Layout) job.Version {
	return job.Version{Ref: r, Schema: schema, Layout: l}
}

// made creates and indexes a version with one row per url whose views are the version's number.
func made(t *testing.T, db pg.DB, r job.Ref, l job.Layout, urls ...string) {
	t.Helper()
	must(t, store.Create(t.Context(), db, version(r, "public", l)))
	must(t, store.Index(t.Context(), db, version(r, "public", l)))
	for _, u := range urls {
		exec(t, db, fmt.Sprintf(`INSERT INTO %s (hour, url, views, total__s) VALUES ('2026-01-01 10:00Z', $1, $2, 1.5)`, qualified("public", r.Table())), u, int(r.Number))
	}
}

// switched makes the view read r and keeps the contract in the job's row.
func switched(t *testing.T, pool *pg.Pool, c job.ViewChange) json.RawMessage {
	t.Helper()
	contract, err := trySwitch(t.Context(), pool, c)
	must(t, err)
	return contract
}

func trySwitch(ctx context.Context, pool *pg.Pool, c job.ViewChange) (contract json.RawMessage, err error) {
	err = pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		return store.Switch(ctx, tx, c, func(after json.RawMessage) error {
			contract = after
			return nil
		})
	})
	return contract, err
}

// unnoted is for tests that do not look at the contract.
func unnoted(json.RawMessage) error { return nil }

func to(n job.Number, l job.Layout, contract json.RawMessage) job.ViewChange {
	return job.ViewChange{View: public, To: ref(n), Layout: l, Contract: contract}
}

// newRole makes a role of this test's own.
func newRole(t *testing.T, db pg.DB, options string) string {
	t.Helper()
	name := fmt.Sprintf("r%d_%s", roles.Add(1), text(t, db, "SELECT pg_backend_pid()::text || '_' || extract(epoch FROM clock_timestamp())::bigint"))
	exec(t, db, "CREATE ROLE "+name+" "+options)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for _, sql := range []string{"DROP OWNED BY " + name + " CASCADE", "DROP ROLE " + name} {
			if _, err := db.Exec(ctx, sql); err != nil {
				t.Errorf("%s: %v", sql, err)
			}
		}
	})
	return name
}
