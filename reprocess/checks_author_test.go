package reprocess_test

import (
	"context"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
)

// TestChecksReachNoMoreThanTheirAuthor: without checks.role a check runs with the rights of the agent.
func TestChecksReachNoMoreThanTheirAuthor(t *testing.T) {
	w := firstLive(t, 100)
	role := w.text(`SELECT 'author_' || pg_backend_pid()`)
	w.sql(`CREATE ROLE ` + role)
	t.Cleanup(func() {
		if _, err := w.pool.Exec(context.WithoutCancel(t.Context()), `DROP OWNED BY `+role+` CASCADE; DROP ROLE `+role); err != nil {
			t.Error(err)
		}
	})
	for _, sql := range []string{
		`GRANT CREATE, USAGE ON SCHEMA public TO ` + role, `CREATE TABLE public.payroll (salary int)`, `CREATE TABLE public.bounds (n bigint)`,
		`INSERT INTO public.bounds VALUES (1)`, `GRANT SELECT ON public.bounds TO ` + role,
		`CREATE TABLE public.policed (n bigint)`, `GRANT SELECT ON public.policed TO ` + role, `ALTER TABLE public.policed ENABLE ROW LEVEL SECURITY`,
		`CREATE VIEW public.trojan AS SELECT 1 AS one`, `ALTER VIEW public.trojan OWNER TO ` + role,
		`CREATE FUNCTION public.trojan() RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true'`, `ALTER FUNCTION public.trojan() OWNER TO ` + role,
		`ALTER TABLE kappactl.version DISABLE TRIGGER version_author`, `ALTER TABLE kappactl.version ALTER session_role SET DEFAULT '` + role + `'`,
	} {
		w.sql(sql)
	}
	s := w.stage("bbb", auto, withChecks(
		sql("own rows", `SELECT (SELECT n FROM candidate) = (SELECT n FROM live) AND now() > '2020-01-01'`),
		sql("granted", `SELECT n > (SELECT n FROM public.bounds) FROM candidate`),
		sql("waits", `SELECT pg_sleep(0) IS NOT NULL; `),
		sql("table", `SELECT NOT EXISTS (SELECT FROM public.payroll)`),
		sql("policy", `SELECT NOT EXISTS (SELECT FROM public.policed)`),
		sql("view", `SELECT one = 1 FROM public.trojan`),
		sql("function", `SELECT public.trojan()`),
		sql("any SQL", `SELECT query_to_xml('TABLE public.payroll', true, false, '') IS NOT NULL`),
		sql("file", `SELECT pg_read_file('postgresql.conf') > ''`),
		sql("setting", `SELECT set_config('role', 'none', false) > ''`),
		sql("control", `SELECT EXISTS (SELECT FROM kappactl.version)`),
		sql("escape", `SELECT true) AS q, (SELECT EXISTS (SELECT FROM public.payroll)`),
		job.Check{Name: "diff", Diff: &job.DiffLimit{DiffHow: job.DiffHow{Where: `n > (SELECT count(*) FROM public.payroll)`}}},
		job.Check{Name: "same", Diff: &job.DiffLimit{DiffHow: job.DiffHow{Where: `n > 0`}}},
	))
	d := w.finish(s.Deployment, "live", job.ExitChecks)
	has(t, d.Message,
		`check "table": no answer: it reads public.payroll, which the role that deployed the job file may not read`, `check "policy": no answer: it reads public.policed`,
		`check "view": no answer: it reads public.trojan`, `check "function": no answer: it calls public.trojan()`, `check "any SQL": no answer: it calls query_to_xml`,
		`check "file": no answer: it calls pg_read_file`, `check "setting": no answer: it calls set_config`, `check "control": no answer: it reads kappactl.version`,
		`check "escape": no answer`, `check "diff": no answer: it reads public.payroll`)
	for _, good := range []string{"own rows", "granted", "waits", "same"} {
		if strings.Contains(d.Message, `"`+good+`"`) {
			t.Errorf("check %q: %s", good, d.Message)
		}
	}
}

// TestWhoWritesAJobFileLastIsItsAuthor: also when the statement names another role.
func TestWhoWritesAJobFileLastIsItsAuthor(t *testing.T) {
	w := firstLive(t, 100)
	w.sql(`UPDATE kappactl.version SET session_role = 'ceo'`)
	w.sql(`UPDATE kappactl.version SET spec = spec, session_role = 'ceo'`)
	if got := w.text(`SELECT string_agg(DISTINCT session_role || ' ' || session_user, ',') FROM kappactl.version`); strings.Contains(got, "ceo") {
		t.Error(got)
	}
}
