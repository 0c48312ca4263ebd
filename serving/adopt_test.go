package serving

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

// adopted adopts what stands at public.hits_by_url.
func adopted(t *testing.T, pool *pg.Pool) (job.Adoption, Contract, error) {
	t.Helper()
	a, err := store.Inspect(t.Context(), pool, public, ref(0))
	if err != nil {
		return a, Contract{}, err
	}
	var contract json.RawMessage
	err = pool.ReadCommitted(t.Context(), func(tx *pg.Tx) (err error) {
		contract, err = store.Adopt(t.Context(), tx, a)
		return err
	})
	if err != nil {
		return a, Contract{}, err
	}
	exec(t, pool, `INSERT INTO kappactl.job (name, view_schema, view_name, contract) VALUES ('hits', 'public', 'hits_by_url', $1::jsonb)`, string(contract))
	return a, decode(t, contract), nil
}

const takenOver = `CREATE TYPE public.mood AS ENUM ('ok');
	CREATE TABLE public.hits_by_url (url text COLLATE "C" NOT NULL, hour timestamptz, views bigint DEFAULT 1, total numeric(12,2), "Mood" public.mood, gone int);
	ALTER TABLE public.hits_by_url DROP COLUMN gone;
	CREATE UNIQUE INDEX ON public.hits_by_url (url);
	COMMENT ON TABLE public.hits_by_url IS 'It''s ours';
	COMMENT ON COLUMN public.hits_by_url."Mood" IS 'how it felt';
	INSERT INTO public.hits_by_url VALUES ('/a', '2026-01-01 10:00Z', 3, 1.5, 'ok');
	CREATE VIEW public.report WITH (security_barrier) AS SELECT h.url, h.views + 1 AS more FROM public.hits_by_url h;
	CREATE VIEW public.nested AS SELECT more FROM public.report JOIN public.hits_by_url USING (url)`

func TestAdoptPutsAViewInATablesPlaceAndReadersNoticeNothing(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	reader, owner := newRole(t, pool, ""), newRole(t, pool, "")
	exec(t, pool, takenOver)
	exec(t, pool, `GRANT CREATE ON SCHEMA public TO `+owner+`; ALTER TABLE public.hits_by_url OWNER TO `+owner+`;
		GRANT SELECT, INSERT ON public.hits_by_url TO `+reader+`; GRANT UPDATE (views) ON public.hits_by_url TO `+reader+`;
		GRANT SELECT ON public.report TO `+reader+`; ALTER VIEW public.report OWNER TO `+owner)
	a, contract, err := adopted(t, pool)
	must(t, err)
	if diff := cmp.Diff([]string{"view nested", "view report"}, a.Follow); diff != "" || len(a.Stay) != 0 || a.Kind != "table" || a.Owner != owner {
		t.Errorf("%+v %s", a, diff)
	}
	want := Contract{
		Columns: []Column{
			{Name: "url", Type: "text", Collation: `pg_catalog."C"`},
			{Name: "hour", Type: "timestamp with time zone"},
			{Name: "views", Type: "bigint"},
			{Name: "total", Type: "numeric(12,2)"},
			{Name: "Mood", Type: "mood"},
		},
		Owner: owner, Comment: "It's ours",
		Grants: []Grant{{Privilege: "INSERT", Role: reader}, {Privilege: "SELECT", Role: reader}, {Privilege: "UPDATE", Role: reader, OnColumn: "views"}},
	}
	if diff := cmp.Diff(want, contract); diff != "" {
		t.Errorf("contract: %s", diff)
	}
	if got := text(t, pool, `SELECT col_description('public.hits_by_url'::regclass, 5)`); got != "how it felt" {
		t.Errorf("the column's comment is %q", got)
	}
	// Readers read, and who wrote goes on, through the view.
	exec(t, pool, "SET ROLE "+reader+`; INSERT INTO public.hits_by_url (url) VALUES ('/b') ON CONFLICT (url) DO NOTHING;
		UPDATE public.hits_by_url SET views = 5 WHERE url = '/a'; SELECT more FROM public.report; RESET ROLE`)
	if got := text(t, pool, `SELECT url || views FROM public.hits__v0 ORDER BY 1`); got != "/a5\n/b1" {
		t.Errorf("the table has %q", got)
	}
	// Reports follow a switch to a version.
	felt := with(hits(), "Mood", "mood")
	made(t, pool, ref(1), felt, "/v1")
	change := to(1, felt, mustJSON(t, contract))
	switched(t, pool, change)
	if got := text(t, pool, `SELECT url || ' ' || more || ' ' || (SELECT count(*) FROM public.nested) FROM public.report`); got != "/v1 2 1" {
		t.Errorf("the report shows %q", got)
	}
	if got := text(t, pool, `SELECT reloptions::text FROM pg_class WHERE relname = 'report'`); got != "{security_barrier=true}" {
		t.Errorf("the report's options are %s", got)
	}
	switched(t, pool, to(0, a.Layout(), mustJSON(t, contract)))
	if got := text(t, pool, `SELECT url || more FROM public.report ORDER BY 1`); got != "/a6\n/b2" {
		t.Errorf("after going back the report shows %q", got)
	}
}

func mustJSON(t *testing.T, c Contract) json.RawMessage {
	t.Helper()
	b, err := json.Marshal(c)
	must(t, err)
	return b
}

func TestAdoptTakesEveryKindOfRelationThatHoldsRows(t *testing.T) {
	t.Parallel()
	for kind, sql := range map[string]string{
		"partitioned table": `CREATE TABLE public.hits_by_url (url text) PARTITION BY LIST (url); CREATE TABLE public.some PARTITION OF public.hits_by_url DEFAULT`,
		"materialized view": `CREATE MATERIALIZED VIEW public.hits_by_url AS SELECT '/a'::text AS url`,
		"foreign table":     `CREATE FOREIGN DATA WRAPPER none; CREATE SERVER far FOREIGN DATA WRAPPER none; CREATE FOREIGN TABLE public.hits_by_url (url text) SERVER far`,
		"view":              `CREATE TABLE public.base (url text); CREATE VIEW public.hits_by_url WITH (check_option = local) AS SELECT url FROM public.base WHERE url <> ''`,
	} {
		t.Run(kind, func(t *testing.T) {
			pool, _ := pgtest.New(t)
			reader := newRole(t, pool, "")
			exec(t, pool, sql)
			exec(t, pool, `CREATE VIEW public.report AS SELECT url FROM public.hits_by_url; GRANT SELECT ON public.hits_by_url TO `+reader)
			a, contract, err := adopted(t, pool)
			must(t, err)
			if a.Kind != kind || len(contract.Columns) != 1 || len(contract.Grants) != 1 {
				t.Errorf("%+v %+v", a, contract)
			}
			if kind != "foreign table" {
				exec(t, pool, "SET ROLE "+reader+"; SELECT url FROM public.hits_by_url; RESET ROLE; SELECT url FROM public.report")
			}
			if got := text(t, pool, selectReads, "report"); got != "hits_by_url" {
				t.Errorf("the report reads %s", got)
			}
			if got := text(t, pool, selectReads, "hits_by_url"); got != "hits__v0" {
				t.Errorf("the view reads %s", got)
			}
		})
	}
}

// selectReads is what a view reads.
const selectReads = `SELECT DISTINCT t.relname::text FROM pg_rewrite r JOIN pg_depend d ON d.objid = r.oid AND d.refclassid = 'pg_class'::regclass
	JOIN pg_class t ON t.oid = d.refobjid JOIN pg_class v ON v.oid = r.ev_class WHERE v.relname = $1 AND t.oid <> v.oid`

func TestAdoptRefusesWhatItCannotKeep(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sql   string
		code  job.ExitCode
		words []string
	}{
		"nothing":      {"", job.ExitUsage, []string{"there is no relation", "kappactl deploy FILE"}},
		"a sequence":   {"CREATE SEQUENCE public.hits_by_url", job.ExitConflict, []string{"neither a table nor a view"}},
		"row security": {"CREATE TABLE public.hits_by_url (url text); ALTER TABLE public.hits_by_url ENABLE ROW LEVEL SECURITY", job.ExitConflict, []string{"row level security"}},
		"a taken name": {"CREATE TABLE public.hits_by_url (url text); CREATE TABLE public.hits__v0 (a int)", job.ExitConflict, []string{"public.hits__v0 exists"}},
		"no columns":   {"CREATE TABLE public.hits_by_url ()", job.ExitConflict, []string{"no columns"}},
		"a whole row": {
			"CREATE TABLE public.hits_by_url (url text PRIMARY KEY, n int); CREATE VIEW public.report AS SELECT url, n, count(*) FROM public.hits_by_url GROUP BY url",
			job.ExitConflict,
			[]string{"view public.report cannot read a view"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pool, _ := pgtest.New(t)
			exec(t, pool, c.sql)
			_, _, err := adopted(t, pool)
			wantRefusal(t, err, c.code, c.words...)
		})
	}
}

func TestInspectListsWhatStaysWithTheTable(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	exec(t, pool, `CREATE TABLE public.hits_by_url (url text PRIMARY KEY, parent text REFERENCES public.hits_by_url (url), n int GENERATED ALWAYS AS IDENTITY);
		CREATE TABLE public.child (url text REFERENCES public.hits_by_url (url));
		CREATE MATERIALIZED VIEW public.totals AS SELECT count(*) FROM public.hits_by_url;
		CREATE FUNCTION public.f(public.hits_by_url) RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE PUBLICATION changes FOR TABLE public.hits_by_url`)
	a, err := store.Inspect(t.Context(), pool, public, ref(0))
	must(t, err)
	got := strings.Join(a.Stay, "; ")
	for _, want := range []string{"constraint child_url_fkey on table child", "materialized view totals", "function f(hits_by_url)", "publication changes"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing in: %s", want, got)
		}
	}
	if len(a.Stay) != 4 || len(a.Follow) != 0 {
		t.Errorf("%v %v", a.Stay, a.Follow)
	}
}

func TestAdoptNamesTheMissingRight(t *testing.T) {
	t.Parallel()
	pool, dsn := pgtest.New(t)
	agent, owner := newRole(t, pool, "LOGIN PASSWORD 'secret'"), newRole(t, pool, "")
	exec(t, pool, `CREATE TABLE public.hits_by_url (url text); GRANT CREATE, USAGE ON SCHEMA public TO `+agent+`, `+owner+`;
		GRANT USAGE ON SCHEMA kappactl TO `+agent+`; ALTER TABLE public.hits_by_url OWNER TO `+owner)
	as, err := pg.Open(t.Context(), pg.Config{DSN: pgtest.As(dsn, agent, "secret")})
	must(t, err)
	t.Cleanup(as.Close)
	a, err := store.Inspect(t.Context(), as, public, ref(0))
	must(t, err)
	adopt := func() error {
		return as.ReadCommitted(t.Context(), func(tx *pg.Tx) error { _, err := store.Adopt(t.Context(), tx, a); return err })
	}
	wantRefusal(t, adopt(), job.ExitUnreachable, "belongs to "+pgIdent(owner), "GRANT "+pgIdent(owner)+" TO "+pgIdent(agent))
	exec(t, pool, "GRANT "+owner+" TO "+agent)
	must(t, adopt())
}
