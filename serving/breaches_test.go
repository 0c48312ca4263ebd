package serving

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
	"github.com/kappactl/kappactl/internal/reach"
)

// asAgent is a database with objects of others, seen by the role of an agent, which may read public.payroll. author
// is the role that deploys jobs: it owns schema mine.
func asAgent(t *testing.T) (agent *pg.Pool, author string) {
	t.Helper()
	pool, dsn := pgtest.New(t)
	agentRole, author := newRole(t, pool, "LOGIN PASSWORD 'x'"), newRole(t, pool, "LOGIN PASSWORD 'x'")
	exec(t, pool, strings.NewReplacer("{agent}", agentRole, "{author}", author).Replace(`
		GRANT USAGE ON SCHEMA kappactl TO {agent}; GRANT SELECT ON ALL TABLES IN SCHEMA kappactl TO {agent}; GRANT USAGE, CREATE ON SCHEMA public TO {agent};
		CREATE TABLE public.payroll (salary bigint); INSERT INTO public.payroll VALUES (1); GRANT SELECT ON public.payroll TO {agent};
		CREATE SEQUENCE public.ids; GRANT ALL ON public.ids TO {agent}; CREATE FOREIGN DATA WRAPPER nothing; CREATE SERVER elsewhere FOREIGN DATA WRAPPER nothing;
		CREATE VIEW public.paid AS SELECT * FROM public.payroll; CREATE TYPE public.mood AS ENUM ('good', 'bad');
		CREATE FUNCTION public.most() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT max(salary) FROM public.payroll';
		CREATE FUNCTION public.most_of_owner() RETURNS bigint LANGUAGE sql IMMUTABLE SECURITY DEFINER AS 'SELECT max(salary) FROM public.payroll';
		CREATE FUNCTION public.twice(bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 2 * $1';
		CREATE FUNCTION public.secret(bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 3 * $1'; REVOKE EXECUTE ON FUNCTION public.secret FROM PUBLIC;
		GRANT EXECUTE ON FUNCTION public.secret TO {agent};
		CREATE SCHEMA mine AUTHORIZATION {author}; GRANT USAGE ON SCHEMA mine TO PUBLIC;
		SET ROLE {author};
		CREATE FUNCTION mine.pure(bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT max(salary) FROM public.payroll';
		CREATE FUNCTION mine.valid(text) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
		CREATE DOMAIN mine.word AS text CHECK (mine.valid(VALUE));
		CREATE TYPE mine.pair AS (a mine.word, b int);
		CREATE OPERATOR mine.+! (FUNCTION = mine.pure, RIGHTARG = bigint);
		CREATE AGGREGATE mine.total(bigint) (SFUNC = int8pl, STYPE = bigint);
		RESET ROLE;`))
	agent, err := pg.Open(t.Context(), pg.Config{DSN: pgtest.As(dsn, agentRole, "x")})
	must(t, err)
	t.Cleanup(agent.Close)
	return agent, author
}

func TestServeSQLThatReachesBeyondTheJobIsRefused(t *testing.T) {
	t.Parallel()
	agent, author := asAgent(t)
	for expr, name := range map[string]string{
		"(SELECT max(salary) FROM public.payroll)":                                                        "public.payroll",
		"(TABLE public.payroll)":                                                                          "public.payroll",
		"(WITH p AS (SELECT * FROM public.payroll) SELECT sum(salary) FROM p)":                            "public.payroll",
		"exists (SELECT FROM public.payroll WHERE salary > 1)":                                            "public.payroll",
		"views IN (SELECT salary FROM public.payroll)":                                                    "public.payroll",
		"array(SELECT salary FROM public.payroll)":                                                        "public.payroll",
		"(SELECT x.salary FROM unnest(ARRAY[1]) AS u, LATERAL (SELECT salary FROM payroll LIMIT 1) AS x)": "public.payroll",
		"(SELECT max(salary) FROM public.paid)":                                                           "public.paid",
		"(SELECT views FROM public.hits__v2 LIMIT 1)":                                                     "public.hits__v2",
		"(SELECT count(*) FROM kappactl.dead_letter)":                                                     "kappactl.dead_letter",
		"(SELECT string_agg(rolname, ',') FROM pg_catalog.pg_roles)":                                      "pg_catalog.pg_roles",
		"(SELECT count(*) FROM information_schema.tables)":                                                "information_schema.tables",
		"'public.payroll'::regclass":                                                                      "public.payroll",
		"nextval('public.ids')":                                                                           "nextval(regclass)",
		"pg_read_file('/etc/passwd')":                                                                     "pg_read_file(text)",
		"PG_CATALOG . \"pg_read_file\" ('/etc/passwd')":                                                   "pg_read_file(text)",
		"(SELECT count(*) FROM pg_ls_dir('.'))":                                                           "pg_ls_dir(text)",
		"query_to_xml('TABLE public.payroll', true, false, '')":                                           "query_to_xml",
		"table_to_xml('public.payroll', true, false, '')":                                                 "table_to_xml",
		"database_to_xml(true, false, '')":                                                                "database_to_xml",
		"current_setting('data_directory')":                                                               "current_setting(text)",
		"set_config('role', 'postgres', false)":                                                           "set_config(text, text, boolean)",
		"lo_get(1)::text":                                                                                 "lo_get(oid)",
		"lo_import('/etc/passwd')":                                                                        "lo_import(text)",
		"lo_export(1, '/tmp/x')":                                                                          "lo_export(oid, text)",
		"pg_terminate_backend(1)":                                                                         "pg_terminate_backend",
		"(SELECT count(*) FROM ts_stat('SELECT salary::text::tsvector FROM payroll'))":                    "ts_stat",
		"ts_rewrite('a', 'SELECT 1, 2')::text":                                                            "ts_rewrite",
		"has_table_privilege('public.payroll', 'select')":                                                 "has_table_privilege",
		"pg_get_viewdef('public.paid'::text)":                                                             "pg_get_viewdef",
		"pg_stat_get_backend_activity(1)":                                                                 "pg_stat_get_backend_activity",
		"(SELECT count(*) FROM pg_show_all_settings())":                                                   "pg_show_all_settings()",
		"pg_sleep(1)::text":                                                                               "pg_sleep",
		"random()":                                                                                        "random()",
		"pg_advisory_lock(1)::text":                                                                       "pg_advisory_lock",
		"pg_notify('a', 'b')::text":                                                                       "pg_notify",
		"txid_current()":                                                                                  "txid_current()",
		"public.most()":                                                                                   "public.most()",
		"public.most_of_owner()":                                                                          "public.most_of_owner()",
		"public.secret(views)":                                                                            "public.secret(bigint)",
		"mine.pure(views)":                                                                                "mine.pure(bigint)",
		"OPERATOR(mine.+!) views":                                                                         "mine.pure(bigint)",
		"mine.total(views) OVER ()":                                                                       "mine.total",
		"url::mine.word":                                                                                  "mine.word",
		"ARRAY[url]::mine.word[]":                                                                         "mine.word",
		"(ROW(url, 1)::mine.pair)::text":                                                                  "mine.pair",
		"(json_populate_record(NULL::mine.pair, '{\"a\": \"x\"}')).b":                                     "mine.pair",
		"CASE WHEN false THEN pg_read_file('x') END":                                                      "pg_read_file(text)",
		"nullif(current_setting('a', true), '')":                                                          "current_setting(text, boolean)",
		"(array_agg(pg_read_file(url)) OVER ())::text":                                                    "pg_read_file(text)",
		"1) AS other, (SELECT max(salary) FROM public.payroll":                                            "public.payroll",
	} {
		for path, l := range map[string]job.Layout{"serve.columns.leak": computed("leak", expr), "serve.where": whereOf("(" + expr + ")::text = ''")} {
			if strings.HasPrefix(expr, "1)") && path == "serve.where" || strings.Contains(expr, "OVER") && path == "serve.where" {
				continue
			}
			err := createOthers(t, agent, l, author)
			if len(err) == 0 {
				t.Errorf("%s: %s was taken", path, expr)
				continue
			}
			if err[0].Path != path || !strings.Contains(err[0].Error(), name) {
				t.Errorf("%s %s: got %+v, want %s", path, expr, err[0], name)
			}
		}
	}
}

func whereOf(text string) job.Layout {
	l := hits()
	l.Where = text
	return l
}

// createOthers are the breaches of a layout over a table of the agent.
func createOthers(t *testing.T, agent *pg.Pool, l job.Layout, author string) (found []reach.Placed) {
	t.Helper()
	exec(t, agent, `CREATE TABLE IF NOT EXISTS public.hits__v1 (hour timestamptz, url text COLLATE "C", views bigint, total__s numeric);
		CREATE TABLE IF NOT EXISTS public.hits__v2 (LIKE public.hits__v1)`)
	err := pg.Probe(t.Context(), agent, func(tx pgx.Tx) (err error) {
		found, err = store.Breaches(t.Context(), tx, version(ref(1), "public", l), reach.Limit{Author: author})
		return err
	})
	if err != nil {
		t.Fatalf("%+v: %v", l, err)
	}
	return found
}

func TestServeSQLOverTheColumnsOfTheQueryIsTaken(t *testing.T) {
	t.Parallel()
	agent, author := asAgent(t)
	for _, expr := range []string{
		"total / nullif(views, 0)", "round(total, 2)::text || ' €'", "to_char(hour, 'YYYY-MM')", "date_trunc('day', hour AT TIME ZONE 'UTC')", "now() - hour",
		"extract(hour FROM hour)", "coalesce(url, '')", "CASE WHEN views > 5 THEN 'many' ELSE 'few' END", "url ~ '^/a' AND url LIKE '/%'",
		"(SELECT max(x) FROM unnest(ARRAY[views, 1]) AS x)", "jsonb_build_object('a', views, 'b', url)", "to_jsonb(total)", "array_length(string_to_array(url, '/'), 1)",
		"concat_ws('/', url, views)", "format('%s', url)", "sum(views) OVER (PARTITION BY url)", "rank() OVER (ORDER BY views)", "md5(url)", "encode(sha256(url::bytea), 'hex')",
		"current_user = url", "hour > current_date - 30", "to_tsvector('english', url) @@ plainto_tsquery('english', 'a')", "width_bucket(total, 0, 10, 5)",
		"upper(url) COLLATE \"C\"", "public.twice(views)", "'good'::public.mood", "hour::date", "age(hour)", "int8range(1, views) @> 5::bigint", "greatest(views, 1)",
		"views::numeric(12,3)", "(regexp_match(url, 'a(.)'))[1]", "url IN ('a', 'b')", "views = ANY (ARRAY[1, 2])", "(SELECT count(*) FROM generate_series(1, views))",
		"pg_has_role(url::name, 'MEMBER')", "timezone('UTC', hour)", "ROW(url, views) < ROW('a', 1)", "url IS DISTINCT FROM 'a'",
	} {
		if found := createOthers(t, agent, computed("extra", expr), author); len(found) > 0 {
			t.Errorf("%s: %+v", expr, found[0])
		}
	}
}

func TestTheAgentRefusesServeSQLByTheRightsOfWhoDeployedIt(t *testing.T) {
	t.Parallel()
	agent, _ := asAgent(t)
	wantRefusal(t, store.Create(t.Context(), agent, version(ref(1), "public", computed("leak", "(SELECT max(salary) FROM public.payroll)"))), job.ExitUsage,
		"serve.columns.leak", "PostgreSQL SQL", "public.payroll")
	if got := text(t, agent, `SELECT count(*)::text FROM pg_class WHERE relname LIKE '%reach'`); got != "0" {
		t.Errorf("%s views are left", got)
	}
}
