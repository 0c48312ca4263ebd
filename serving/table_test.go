package serving

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgerrcode"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

func TestCreateIndexAnalyzeAndDropCanEachBeRepeated(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	for range 2 {
		must(t, store.Create(t.Context(), pool, version(ref(1), "public", hits())))
	}
	exec(t, pool, `INSERT INTO hits__v1 (url, views) SELECT 'u' || i, i FROM generate_series(1, 1000) i`)
	for range 2 {
		must(t, store.Index(t.Context(), pool, version(ref(1), "public", hits())))
		must(t, store.Analyze(t.Context(), pool, job.Version{Ref: ref(1), Schema: "public"}))
	}
	if got := text(t, pool, `SELECT reloptions::text || ' ' || reltuples FROM pg_class WHERE relname = 'hits__v1'`); got != "{fillfactor=75} 1000" {
		t.Errorf("table is %s", got)
	}
	if got, want := text(t, pool, `SELECT indexdef FROM pg_indexes WHERE tablename = 'hits__v1'`),
		`CREATE UNIQUE INDEX hits__v1_key ON public.hits__v1 USING btree (hour, url) NULLS NOT DISTINCT`; got != want {
		t.Errorf("index is %s\nwant     %s", got, want)
	}
	if got := text(t, pool, `SELECT obj_description('hits__v1'::regclass)`); !strings.Contains(got, "version v1 of job hits") {
		t.Errorf("comment is %q", got)
	}
	for range 2 {
		must(t, store.Drop(t.Context(), pool, job.Version{Ref: ref(1), Schema: "public"}))
	}
	if got := texts(t, pool, `SELECT relname::text FROM pg_class WHERE relname LIKE 'hits%'`); len(got) > 0 {
		t.Errorf("left after the drop: %v", got)
	}
}

func TestAKeyThatIsNullIsUniqueToo(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	made(t, pool, ref(1), hits())
	exec(t, pool, `INSERT INTO hits__v1 (url, hour) VALUES (NULL, NULL)`)
	_, err := pool.Exec(t.Context(), `INSERT INTO hits__v1 (url, hour) VALUES (NULL, NULL)`)
	if pg.Code(err) != pgerrcode.UniqueViolation {
		t.Errorf("a second NULL key gave %v, want a unique violation", err)
	}
}

// TestARollupWithoutKeysHasOneRow: Index is repeated, as a build that is taken up again does; the index that is there is kept.
func TestARollupWithoutKeysHasOneRow(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	l := hits()
	l.Keys, l.View = nil, l.View[2:]
	must(t, store.Create(t.Context(), pool, version(ref(1), "public", l)))
	must(t, store.Index(t.Context(), pool, version(ref(1), "public", l)))
	const index = `SELECT 'hits__v1_key'::regclass::oid || ' ' || pg_get_indexdef('hits__v1_key'::regclass)`
	before := text(t, pool, index)
	must(t, store.Index(t.Context(), pool, version(ref(1), "public", l)))
	if after := text(t, pool, index); after != before {
		t.Errorf("the index was made again: %s, before %s", after, before)
	}
	exec(t, pool, `INSERT INTO hits__v1 (views, total__s) VALUES (1, 1)`)
	_, err := pool.Exec(t.Context(), `INSERT INTO hits__v1 (views) VALUES (1)`)
	if pg.Code(err) != pgerrcode.UniqueViolation {
		t.Errorf("a second row gave %v, want a unique violation", err)
	}
}

func TestCreateRefusesWhatIsNotOurs(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"a table":                     `CREATE TABLE public.hits__v1 (hour timestamptz, url text, views bigint, total__s numeric)`,
		"a view":                      `CREATE VIEW public.hits__v1 AS SELECT 1 AS hour`,
		"a table of other columns":    `CREATE TABLE public.hits__v1 (hour smallint); COMMENT ON TABLE public.hits__v1 IS '` + tableComment(version(ref(1), "public", hits())) + `'`,
		"our table of another layout": `CREATE TABLE public.hits__v1 (hour smallint); COMMENT ON TABLE public.hits__v1 IS '` + tableComment(version(ref(1), "public", with(hits(), "x", "bigint"))) + `'`,
	} {
		t.Run(name, func(t *testing.T) {
			pool, _ := pgtest.New(t)
			exec(t, pool, sql)
			wantRefusal(t, store.Create(t.Context(), pool, version(ref(1), "public", hits())), job.ExitConflict, `"public"."hits__v1"`)
		})
	}
}

func TestCreateKeepsColumnsAndIndexesThatPeopleAdded(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	made(t, pool, ref(1), hits())
	exec(t, pool, `ALTER TABLE hits__v1 ADD note text; CREATE INDEX by_url ON hits__v1 (url)`)
	must(t, store.Create(t.Context(), pool, version(ref(1), "public", hits())))
	must(t, store.Index(t.Context(), pool, version(ref(1), "public", hits())))
}

func TestIndexMakesAnInvalidOneAgainAndRefusesAnothersName(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	made(t, pool, ref(1), hits())
	exec(t, pool, `UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'hits__v1_key'::regclass`)
	must(t, store.Index(t.Context(), pool, version(ref(1), "public", hits())))
	if got := text(t, pool, `SELECT indisvalid::text FROM pg_index WHERE indexrelid = 'hits__v1_key'::regclass`); got != "true" {
		t.Errorf("indisvalid is %s", got)
	}
	exec(t, pool, `DROP INDEX hits__v1_key; CREATE TABLE public.hits__v1_key (x int)`)
	wantRefusal(t, store.Index(t.Context(), pool, version(ref(1), "public", hits())), job.ExitConflict, "hits__v1_key")
}

func TestCreateNamesTheMissingRightOrSchema(t *testing.T) {
	t.Parallel()
	pool, dsn := pgtest.New(t)
	role := newRole(t, pool, "LOGIN PASSWORD 'x'")
	exec(t, pool, `CREATE SCHEMA s; GRANT USAGE ON SCHEMA kappactl TO `+role+`; GRANT SELECT ON ALL TABLES IN SCHEMA kappactl TO `+role)
	weak, err := pg.Open(t.Context(), pg.Config{DSN: pgtest.As(dsn, role, "x")})
	must(t, err)
	defer weak.Close()
	wantRefusal(t, store.Create(t.Context(), weak, version(ref(1), "s", hits())), job.ExitUnreachable, "CREATE", `"s"`, role)
	wantRefusal(t, store.Create(t.Context(), weak, version(ref(1), "gone", hits())), job.ExitUsage, `"gone"`, "CREATE SCHEMA")
}

func TestCreateRefusesComputedColumnsThatDoNotStand(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	l := hits()
	l.View = append(l.View, job.ViewColumn{Name: "per_view", Computed: true, Finish: "totle / nullif(views, 0)"})
	wantRefusal(t, store.Create(t.Context(), pool, version(ref(1), "public", l)), job.ExitUsage, "PostgreSQL SQL", "totle")
	l = hits()
	l.Where = "views > 'many'"
	if err := store.Create(t.Context(), pool, version(ref(2), "public", l)); err == nil {
		t.Error("a where that compares a number with a word was taken")
	}
}

func TestNamesOfEveryKind(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	names := []string{`a"b`, `a.b`, `Upper`, `select`, `ü λ 統`, strings.Repeat("n", 63), strings.Repeat("é", 31), `back\slash`, `it's`, ` `, `kappactl.x`, `$1`, `@x`}
	l := job.Layout{Shape: job.Rollup}
	for _, n := range names {
		l.Keys = append(l.Keys, job.KeyColumn{Name: n, Type: `text COLLATE "C"`})
		l.View = append(l.View, job.ViewColumn{Name: n, Type: "text", Finish: "s." + pgIdent(n), Key: true})
	}
	for _, schema := range append(names, "public") {
		if schema != "public" {
			exec(t, pool, "CREATE SCHEMA "+pgIdent(schema))
		}
		for n := range job.Number(2) {
			r := job.Ref{Job: "odd", Number: n + 1}
			must(t, store.Create(t.Context(), pool, version(r, schema, l)))
			must(t, store.Index(t.Context(), pool, version(r, schema, l)))
			must(t, store.Analyze(t.Context(), pool, job.Version{Ref: r, Schema: schema}))
		}
		view := job.ViewName{Schema: schema, Name: schema}
		c := job.ViewChange{View: view, To: job.Ref{Job: "odd", Number: 1}, Layout: l}
		c.Contract = switched(t, pool, c)
		c.To.Number = 2
		switched(t, pool, c)
		if got := text(t, pool, `SELECT string_agg(attname, '|' ORDER BY attnum) FROM pg_attribute WHERE attrelid = $1::regclass`,
			pg.Ident(view.Schema, view.Name)); got != strings.Join(names, "|") {
			t.Errorf("view columns: %s", cmp.Diff(strings.Join(names, "|"), got))
		}
		must(t, store.Drop(t.Context(), pool, job.Version{Ref: job.Ref{Job: "odd", Number: 1}, Schema: schema}))
	}
}

func TestNamesThatWouldBeCutAreRefusedWithTheirBytes(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	long := strings.Repeat("é", 32)
	wantRefusal(t, store.Create(t.Context(), pool, version(ref(1), "public", with(hits(), long, "bigint"))), job.ExitUsage, "64 bytes")
	c := to(1, hits(), nil)
	c.View.Name = long
	made(t, pool, ref(1), hits())
	_, err := trySwitch(t.Context(), pool, c)
	wantRefusal(t, err, job.ExitUsage, "64 bytes")
}

func TestShortenedNamesStayApartAndWhole(t *testing.T) {
	a, b := shortened(strings.Repeat("é", 40)+"1", "_key"), shortened(strings.Repeat("é", 40)+"2", "_key")
	if a == b || len(a) > maxName || !strings.HasSuffix(a, "_key") || strings.ContainsRune(a, '\uFFFD') {
		t.Errorf("%q and %q", a, b)
	}
	longest := job.Ref{Job: job.Name(strings.Repeat("j", 40)), Number: 1<<31 - 1}
	if got := keyIndex(longest.Table()); got != longest.Table()+"_key" {
		t.Errorf("the longest job's index is %q", got)
	}
}

func TestDropRefusesWithWhatReadsTheTable(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	made(t, pool, ref(1), hits(), "/a")
	switched(t, pool, to(1, hits(), nil))
	exec(t, pool, `
		CREATE VIEW report AS SELECT url FROM hits__v1;
		CREATE VIEW report_of_report AS SELECT url FROM report;
		CREATE MATERIALIZED VIEW stored AS SELECT views FROM hits__v1;
		CREATE FUNCTION total() RETURNS numeric LANGUAGE sql BEGIN ATOMIC SELECT sum(total__s) FROM hits__v1; END;
		CREATE TABLE copy (r hits__v1)`)
	got, err := store.Dependants(t.Context(), pool, job.Version{Ref: ref(1), Schema: public.Schema}, public)
	must(t, err)
	if diff := cmp.Diff([]string{"column r of table copy", "function total()", "materialized view stored", "view report"}, got); diff != "" {
		t.Errorf("dependants: %s", diff)
	}
	wantRefusal(t, store.Drop(t.Context(), pool, job.Version{Ref: ref(1), Schema: "public"}), job.ExitConflict, "view report", "materialized view stored", "function total()", "hits_by_url")
	if got := text(t, pool, "SELECT count(*)::text FROM report"); got != "1" {
		t.Errorf("report has %s rows", got)
	}
}

func TestDropLeavesATableThatIsNotOurs(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	exec(t, pool, "CREATE TABLE public.hits__v1 (x int)")
	wantRefusal(t, store.Drop(t.Context(), pool, job.Version{Ref: ref(1), Schema: "public"}), job.ExitConflict, "hits__v1")
}

func TestDropDoesNotWaitForAReaderWithoutEnd(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	made(t, pool, ref(1), hits(), "/a")
	err := pool.ReadCommitted(t.Context(), func(tx *pg.Tx) error {
		text(t, tx, "SELECT count(*)::text FROM hits__v1")
		err := New(Config{DropLockTimeout: 20e6}).Drop(t.Context(), pool, job.Version{Ref: ref(1), Schema: "public"})
		if !pg.Retryable(err) {
			t.Errorf("got %v, want a lock timeout that can be retried", err)
		}
		return nil
	})
	must(t, err)
	if got := text(t, pool, "SHOW lock_timeout"); got != "0" {
		t.Errorf("lock_timeout of the session is %s after the drop", got)
	}
	must(t, store.Drop(t.Context(), pool, job.Version{Ref: ref(1), Schema: "public"}))
}

func TestIndexesOfTheJobFileAreMadeMadeAgainAndDropped(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	l := hits()
	l.Indexes = [][]string{{"url"}, {"url", "hour"}}
	made(t, pool, ref(1), l, "/a")
	defs := func() string {
		return text(t, pool, `SELECT regexp_replace(indexdef, '^.* USING btree ', '') FROM pg_indexes WHERE tablename = 'hits__v1' AND indexname ~ '_by_' ORDER BY 1`)
	}
	if got := defs(); got != "(url)\n(url, hour)" {
		t.Errorf("made %s", got)
	}
	exec(t, pool, `CREATE INDEX mine_by_0123abcd ON hits__v1 (views); CREATE INDEX hits__v1_by_0123abcd ON hits__v1 (url, views);
		CREATE INDEX "`+moreIndex(ref(1).Table(), []string{"hour"})+`" ON hits__v1 (hour) WHERE views > 1`)
	exec(t, pool, `UPDATE pg_index SET indisvalid = false WHERE indexrelid = to_regclass('public.'||quote_ident($1))`, moreIndex(ref(1).Table(), []string{"url"}))
	l.Indexes = [][]string{{"url"}, {"views"}}
	must(t, store.Index(t.Context(), pool, version(ref(1), "public", l)))
	if got := defs(); got != "(hour) WHERE (views > 1)\n(url)\n(url, views)\n(views)\n(views)" { // people's own ones stay, whatever their names
		t.Errorf("after the change %s", got)
	}
	if got := text(t, pool, `SELECT bool_and(indisvalid)::text FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid WHERE c.relname = 'hits__v1'`); got != "true" {
		t.Errorf("an index is not valid")
	}
}
