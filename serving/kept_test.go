package serving

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

// computed is hits with columns that PostgreSQL computes: name, expression, name, expression …
func computed(columns ...string) job.Layout {
	l := hits()
	for i := 0; i < len(columns); i += 2 {
		l.View = append(l.View, job.ViewColumn{Name: columns[i], Computed: true, Finish: columns[i+1]})
	}
	return l
}

// TestEveryShapeThatIsNoExtensionIsFoundBeforeTheReplay: PostgreSQL refuses all of them only when the view is replaced.
func TestEveryShapeThatIsNoExtensionIsFoundBeforeTheReplay(t *testing.T) {
	t.Parallel()
	const id, name, code, price = "views::integer", "url::text", "url::varchar(10)", "total::numeric(10,2)"
	first := computed("id", id, "name", name, "code", code, "price", price)
	pool, _ := pgtest.New(t)
	made(t, pool, ref(1), first, "/a")
	contract := switched(t, pool, to(1, first, nil))
	exec(t, pool, `INSERT INTO kappactl.job (name, view_schema, view_name, contract) VALUES ('hits', 'public', 'hits_by_url', $1)`, string(contract))
	n := job.Number(1)
	for what, c := range map[string]struct {
		candidate job.Layout
		says      string // empty: the view takes it
	}{
		"renamed":         {computed("id", id, "title", name, "code", code, "price", price), `"name"`},
		"dropped":         {computed("id", id, "name", name, "code", code), `"price"`},
		"wider integer":   {computed("id", "views::bigint", "name", name, "code", code, "price", price), `"id" would change from integer to bigint`},
		"wider varchar":   {computed("id", id, "name", name, "code", "url::varchar(20)", "price", price), `"code" would change from character varying(10) to character varying(20)`},
		"no length":       {computed("id", id, "name", name, "code", "url::varchar", "price", price), `"code" would change from character varying(10) to character varying`},
		"wider numeric":   {computed("id", id, "name", name, "code", code, "price", "total::numeric(12,2)"), `"price" would change from numeric(10,2) to numeric(12,2)`},
		"another scale":   {computed("id", id, "name", name, "code", code, "price", "total::numeric(10,3)"), `"price" would change from numeric(10,2) to numeric(10,3)`},
		"reordered":       {computed("price", price, "name", name, "code", code, "id", id), ""},
		"more at the end": {computed("id", id, "name", name, "code", code, "price", price, "extra", "1"), ""},
	} {
		n++
		err := store.Check(contract, c.candidate, true)
		if err == nil {
			err = store.Create(t.Context(), pool, version(ref(n), "public", c.candidate))
		}
		if c.says != "" {
			wantRefusal(t, err, job.ExitConflict, c.says)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		contract = switched(t, pool, to(n, c.candidate, contract))
		contract = switched(t, pool, to(1, first, contract)) // which serves NULL for what it lacks
	}
}

func TestWhatDependsOnTheViewIsKeptOverPromoteAndRollback(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	reader := newRole(t, pool, "")
	wide := with(hits(), "extra", "bigint")
	made(t, pool, ref(1), hits(), "/a")
	made(t, pool, ref(2), wide, "/a")
	contract := switched(t, pool, to(1, hits(), nil))
	exec(t, pool, `CREATE VIEW public.report AS SELECT url, views * 10 AS tenfold FROM public.hits_by_url;
		CREATE MATERIALIZED VIEW public.stored AS SELECT * FROM public.hits_by_url;
		CREATE FUNCTION public.first_of() RETURNS SETOF public.hits_by_url LANGUAGE sql AS 'SELECT * FROM public.hits_by_url LIMIT 1';
		GRANT SELECT ON public.report TO `+reader)
	const there = `SELECT oid::text || ' ' || pg_get_viewdef(oid) || ' ' || coalesce(relacl::text, '') FROM pg_class WHERE relname IN ('report', 'stored') ORDER BY relname`
	before := texts(t, pool, there)
	for i, step := range []struct {
		n      job.Number
		layout job.Layout
	}{{2, wide}, {1, hits()}, {2, wide}} {
		contract = switched(t, pool, to(step.n, step.layout, contract))
		if diff := cmp.Diff(before, texts(t, pool, there)); diff != "" {
			t.Errorf("switch %d: %s", i, diff)
		}
		exec(t, pool, "SET ROLE "+reader+"; SELECT * FROM public.report; RESET ROLE; REFRESH MATERIALIZED VIEW public.stored")
		if got := text(t, pool, `SELECT tenfold || ' ' || (SELECT count(*) FROM public.first_of()) FROM public.report`); got != fmt.Sprint(10*int(step.n), " 1") {
			t.Errorf("switch %d: the report says %s", i, got)
		}
	}
}

// TestAPreparedSelectStar: over flips of one shape a client that has prepared it sees no error; over one that adds a column it
// sees PostgreSQL's once a statement, while our own connections, which prepare nothing, see none.
func TestAPreparedSelectStar(t *testing.T) {
	t.Parallel()
	pool, dsn := pgtest.New(t)
	wide := with(hits(), "extra", "bigint")
	made(t, pool, ref(1), hits(), "/a")
	made(t, pool, ref(2), hits(), "/a")
	made(t, pool, ref(3), wide, "/a")
	contract := switched(t, pool, to(1, hits(), nil))
	client, err := pgx.Connect(t.Context(), dsn)
	must(t, err)
	defer func() { _ = client.Close(context.WithoutCancel(t.Context())) }()
	const all = "SELECT * FROM public.hits_by_url"
	_, err = client.Prepare(t.Context(), "all", all)
	must(t, err)
	columns := func(db interface {
		Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	}, sql string,
	) (int, error) {
		rows, err := db.Query(t.Context(), sql)
		if err != nil {
			return 0, err
		}
		rows.Close()
		return len(rows.FieldDescriptions()), rows.Err()
	}
	for _, n := range []job.Number{2, 1, 2} {
		contract = switched(t, pool, to(n, hits(), contract))
		if got, err := columns(client, "all"); err != nil || got != 4 {
			t.Errorf("v%d: the client sees %d columns, %v", n, got, err)
		}
	}
	wantRefusal(t, store.Check(contract, wide, false), job.ExitConflict, `"extra"`, "cached plan must not change result type")
	switched(t, pool, to(3, wide, contract))
	if _, err := columns(client, "all"); pg.Code(err) != pgerrcode.FeatureNotSupported {
		t.Errorf("the client sees %v", err)
	}
	if got, err := columns(pool, all); err != nil || got != 5 {
		t.Errorf("we see %d columns, %v", got, err)
	}
	must(t, client.Deallocate(t.Context(), "all"))
	if got, err := columns(client, all); err != nil || got != 5 {
		t.Errorf("prepared anew the client sees %d columns, %v", got, err)
	}
}
