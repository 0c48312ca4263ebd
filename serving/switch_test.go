package serving

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgerrcode"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

// viewState is all that people may have set on the view.
const viewState = `SELECT c.relkind::text || ' ' || c.relowner::regrole || ' ' || coalesce(c.reloptions::text, '') || ' ' || coalesce(c.relacl::text, '') || ' ' ||
	coalesce((SELECT string_agg(attname || attacl::text, ',') FROM pg_attribute a WHERE a.attrelid = c.oid AND attacl IS NOT NULL), '') || ' ' ||
	coalesce(obj_description(c.oid), '') || ' ' || c.oid::text
	FROM pg_class c WHERE c.oid = 'public.hits_by_url'::regclass`

func decode(t *testing.T, contract json.RawMessage) Contract {
	t.Helper()
	var c Contract
	must(t, json.Unmarshal(contract, &c))
	return c
}

func TestTheFirstSwitchMakesTheViewWithTheGrantsOfTheJobFile(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	analyst := newRole(t, pool, "")
	made(t, pool, ref(1), hits(), "/a")
	c := to(1, hits(), nil)
	c.Grant = map[string][]string{"select": {analyst, "public"}}
	got := decode(t, switched(t, pool, c))
	want := Contract{
		Columns: []Column{
			{Name: "url", Type: "text", Collation: `pg_catalog."C"`},
			{Name: "hour", Type: "timestamp with time zone"},
			{Name: "views", Type: "bigint"},
			{Name: "total", Type: "numeric(12,2)"},
		},
		Owner:   text(t, pool, "SELECT current_user::text"),
		Grants:  []Grant{{Privilege: "SELECT"}, {Privilege: "SELECT", Role: analyst}},
		Spec:    []Grant{{Privilege: "SELECT", Role: analyst}, {Privilege: "SELECT"}},
		Comment: got.Comment,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("contract: %s", diff)
	}
	if got := text(t, pool, `SELECT url || ' ' || views || ' ' || total FROM public.hits_by_url`); got != "/a 1 1.50" {
		t.Errorf("the view gives %q", got)
	}
}

func TestOwnerGrantsOptionsAndCommentAreTheSameAfterPromoteAndRollback(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	reader, lender, columns, owner := newRole(t, pool, ""), newRole(t, pool, ""), newRole(t, pool, ""), newRole(t, pool, "")
	made(t, pool, ref(1), hits(), "/a")
	made(t, pool, ref(2), hits(), "/a")
	c := to(1, hits(), nil)
	c.Grant = map[string][]string{"select": {reader}}
	c.Contract = switched(t, pool, c)
	exec(t, pool, `
		GRANT SELECT ON public.hits_by_url TO `+lender+` WITH GRANT OPTION;
		GRANT SELECT (url) ON public.hits_by_url TO `+columns+`;
		GRANT SELECT ON public.hits__v1 TO `+owner+`;
		ALTER VIEW public.hits_by_url SET (security_barrier = true);
		ALTER VIEW public.hits_by_url OWNER TO `+owner+`;
		COMMENT ON VIEW public.hits_by_url IS 'ours, it''s \ good'`)
	before := text(t, pool, viewState)
	for _, n := range []job.Number{2, 1, 2} {
		c.To = ref(n)
		c.Contract = switched(t, pool, c)
		if diff := cmp.Diff(before, text(t, pool, viewState)); diff != "" {
			t.Errorf("after the switch to v%d: %s", n, diff)
		}
		for _, role := range []string{reader, lender, owner} {
			exec(t, pool, "SET ROLE "+role+"; SELECT count(*) FROM public.hits_by_url; RESET ROLE")
		}
		exec(t, pool, "SET ROLE "+columns+"; SELECT url FROM public.hits_by_url; RESET ROLE")
	}
	if got := decode(t, c.Contract); got.Owner != owner || len(got.Grants) != 3 {
		t.Errorf("contract: %+v", got)
	}
}

func TestAGrantOfTheJobFileThatAPersonTookBackStaysTaken(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	a, b := newRole(t, pool, ""), newRole(t, pool, "")
	made(t, pool, ref(1), hits())
	made(t, pool, ref(2), hits())
	c := to(1, hits(), nil)
	c.Grant = map[string][]string{"select": {a}}
	c.Contract = switched(t, pool, c)
	exec(t, pool, "REVOKE SELECT ON public.hits_by_url FROM "+a)
	c.To, c.Grant = ref(2), map[string][]string{"select": {a, b}}
	contract := decode(t, switched(t, pool, c))
	if diff := cmp.Diff([]Grant{{Privilege: "SELECT", Role: b}}, contract.Grants); diff != "" {
		t.Errorf("grants: %s", diff)
	}
}

func TestAGrantThatLeavesTheJobFileIsTakenBackAndNoOther(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	a, b, byHand, lender := newRole(t, pool, ""), newRole(t, pool, ""), newRole(t, pool, ""), newRole(t, pool, "")
	made(t, pool, ref(1), hits())
	c := to(1, hits(), nil)
	grants := func(roles ...string) []string {
		t.Helper()
		c.Grant = map[string][]string{"select": roles}
		c.Contract = switched(t, pool, c)
		var left []string
		for _, g := range decode(t, c.Contract).Grants {
			left = append(left, g.Role)
		}
		slices.Sort(left)
		return left
	}
	same := func(got []string, want ...string) {
		t.Helper()
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%v may read the view, want %v", got, want)
		}
	}
	same(grants(a, b, "public", lender), "", a, b, lender)
	exec(t, pool, "GRANT SELECT ON public.hits_by_url TO "+byHand)
	exec(t, pool, "GRANT SELECT ON public.hits_by_url TO "+lender+" WITH GRANT OPTION")
	same(grants(a, byHand), a, byHand, lender) // lender's right is no longer what the file made
	same(grants(), byHand, lender)             // byHand had it before the file named it
	same(grants(a), a, byHand, lender)         // named anew, made anew
}

func TestReadersOfASecurityInvokerViewReadTheNextVersionToo(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	reader := newRole(t, pool, "")
	made(t, pool, ref(1), hits(), "/a")
	made(t, pool, ref(2), hits(), "/a")
	contract := switched(t, pool, to(1, hits(), nil))
	exec(t, pool, `GRANT SELECT ON public.hits_by_url, public.hits__v1 TO `+reader+`; ALTER VIEW public.hits_by_url SET (security_invoker = on)`)
	switched(t, pool, to(2, hits(), contract))
	if got := text(t, pool, `SELECT reloptions::text FROM pg_class WHERE relname = 'hits_by_url'`); got != "{security_invoker=on}" {
		t.Errorf("options are %s", got)
	}
	exec(t, pool, "SET ROLE "+reader+"; SELECT * FROM public.hits_by_url; RESET ROLE")
}

// TestAGrantOnAColumnHoldsForTheNextVersion: and opens its table to nobody. A view that checks its reader's rights asks for all
// columns that it reads, so that a role with rights on some of the table's cannot read before the flip, nor after it.
func TestAGrantOnAColumnHoldsForTheNextVersion(t *testing.T) {
	pool, _ := pgtest.New(t)
	reader := newRole(t, pool, "")
	made(t, pool, ref(1), hits(), "/a")
	made(t, pool, ref(2), hits(), "/a")
	asReader := func(query string) string {
		t.Helper()
		_, err := pool.Exec(t.Context(), "SET ROLE "+reader+"; "+query+"; RESET ROLE") // one transaction: an error puts the role off too
		return pg.Code(err)
	}
	contract := switched(t, pool, to(1, hits(), nil))
	exec(t, pool, `GRANT SELECT (url) ON public.hits_by_url TO `+reader)
	contract = switched(t, pool, to(2, hits(), contract))
	const denied = pgerrcode.InsufficientPrivilege
	for query, want := range map[string]string{"SELECT url FROM public.hits_by_url": "", "SELECT views FROM public.hits_by_url": denied, "SELECT url FROM public.hits__v2": denied} {
		if got := asReader(query); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	exec(t, pool, `ALTER VIEW public.hits_by_url SET (security_invoker = on); GRANT SELECT (url) ON public.hits__v2 TO `+reader)
	if got := asReader("SELECT url FROM public.hits_by_url"); got != denied {
		t.Errorf("rights on the columns that are asked for suffice (%q): grant no more than those", got)
	}
	switched(t, pool, to(1, hits(), contract))
	if got := asReader("SELECT url FROM public.hits_by_url"); got != denied {
		t.Errorf("the switch gave access: %q", got)
	}
}

func TestAVersionThatLacksAColumnServesNullOfItsType(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	wide := with(with(hits(), "longest", "numeric(8,3)"), "name", `text`)
	wide.States[len(wide.States)-1].Type = `text COLLATE "POSIX"`
	made(t, pool, ref(1), hits(), "/a")
	made(t, pool, ref(2), wide, "/a")
	columns := `SELECT attname || ' ' || format_type(atttypid, atttypmod) || ' ' || attcollation::regcollation FROM pg_attribute
		WHERE attrelid = 'public.hits_by_url'::regclass AND attnum > 0 ORDER BY attnum`
	contract := switched(t, pool, to(1, hits(), nil))
	contract = switched(t, pool, to(2, wide, contract))
	after := text(t, pool, columns)
	contract = switched(t, pool, to(1, hits(), contract))
	if diff := cmp.Diff(after, text(t, pool, columns)); diff != "" {
		t.Errorf("columns after the rollback: %s", diff)
	}
	if got := text(t, pool, `SELECT views || ' ' || (longest IS NULL) || ' ' || (name IS NULL) FROM public.hits_by_url`); got != "1 true true" {
		t.Errorf("the view gives %q", got)
	}
	if got := decode(t, contract); !got.Columns[4].Lacking || !got.Columns[5].Lacking || got.Columns[3].Lacking {
		t.Errorf("contract: %+v", got.Columns)
	}
	if got := decode(t, switched(t, pool, to(2, wide, contract))); got.Columns[4].Lacking {
		t.Errorf("contract: %+v", got.Columns)
	}
}

func TestColumnsKeepTheContractsOrderAndCollation(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	other := hits()
	other.View = []job.ViewColumn{other.View[3], other.View[2], other.View[1], other.View[0]}
	other.Keys = []job.KeyColumn{other.Keys[0], {Name: "url", Type: "text"}}
	made(t, pool, ref(1), hits(), "/a")
	made(t, pool, ref(2), other, "/a")
	contract := switched(t, pool, to(1, hits(), nil))
	after := switched(t, pool, to(2, other, contract))
	if diff := cmp.Diff(string(contract), string(after)); diff != "" {
		t.Errorf("contract: %s", diff)
	}
	if got := text(t, pool, `SELECT v::text FROM public.hits_by_url v`); !strings.HasPrefix(got, "(/a,") || !strings.HasSuffix(got, ",2,1.50)") {
		t.Errorf("row is %s", got)
	}
}

func TestComputedColumnsAndWhereAreOverTheFinishedRow(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	l := hits()
	l.View = append(l.View, job.ViewColumn{Name: "per_view", Type: "numeric", Computed: true, Finish: "total / nullif(views, 0) -- a comment"})
	l.Where = "views > 1 AND per_view < 10 -- and another"
	made(t, pool, ref(1), l, "/b")
	exec(t, pool, `INSERT INTO hits__v1 (hour, url, views, total__s) VALUES ('2026-01-01 10:00Z', '/a', 3, 6), (NULL, NULL, 3, 3)`)
	switched(t, pool, to(1, l, nil))
	if diff := cmp.Diff([]string{"/a 3 6.00 2.00", "none 3 3.00 1.00"},
		texts(t, pool, `SELECT coalesce(url, 'none') || ' ' || views || ' ' || total || ' ' || round(per_view, 2) FROM public.hits_by_url ORDER BY 1`)); diff != "" {
		t.Error(diff)
	}
}

// TestARollupWithoutKeysAlwaysHasItsOneRow: as SELECT count(*) has, also over a table that no commit has reached yet.
func TestARollupWithoutKeysAlwaysHasItsOneRow(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	l := hits()
	l.Keys, l.View = nil, l.View[2:]
	l.States[0].Aggregate = `coalesce(sum(e."views"), 0)::bigint`
	must(t, store.Create(t.Context(), pool, version(ref(1), "public", l)))
	must(t, store.Index(t.Context(), pool, version(ref(1), "public", l)))
	switched(t, pool, to(1, l, nil))
	const read = `SELECT concat_ws(' ', views, coalesce(total::text, 'null')) FROM public.hits_by_url`
	if diff := cmp.Diff([]string{"0 null"}, texts(t, pool, read)); diff != "" {
		t.Error(diff)
	}
	exec(t, pool, `INSERT INTO hits__v1 (views, total__s) VALUES (1, 1)`)
	if diff := cmp.Diff([]string{"1 1.00"}, texts(t, pool, read)); diff != "" {
		t.Error(diff)
	}
}

func TestAViewThatSomebodyDroppedIsMadeAgainFromTheContract(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	reader := newRole(t, pool, "")
	made(t, pool, ref(1), hits(), "/a")
	contract := switched(t, pool, to(1, hits(), nil))
	exec(t, pool, `GRANT SELECT ON public.hits_by_url TO `+reader+`; GRANT SELECT (url) ON public.hits_by_url TO public;
		ALTER VIEW public.hits_by_url SET (security_barrier); COMMENT ON VIEW public.hits_by_url IS 'mine'`)
	contract = switched(t, pool, to(1, hits(), contract))
	exec(t, pool, "DROP VIEW public.hits_by_url")
	again := switched(t, pool, to(1, hits(), contract))
	if diff := cmp.Diff(string(contract), string(again)); diff != "" {
		t.Errorf("contract: %s", diff)
	}
}

func TestSwitchRefusesWhatIsNotOurs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sql      string
		contract bool
		says     string
	}{
		"a table":                        {sql: `CREATE TABLE public.hits_by_url (x int)`, says: "not a view of this job"},
		"somebody's view":                {sql: `CREATE VIEW public.hits_by_url AS SELECT 1 AS x`, says: "not a view of this job"},
		"our view replaced":              {sql: `DROP VIEW public.hits_by_url; CREATE VIEW public.hits_by_url AS SELECT 1 AS x`, contract: true, says: "reads no version"},
		"our view with another column":   {sql: `CREATE OR REPLACE VIEW public.hits_by_url AS SELECT url, hour, views, total__s::numeric(12,2) AS total, 1 AS one FROM hits__v1`, contract: true, says: "changed by hand"},
		"our view turned into a matview": {sql: `DROP VIEW public.hits_by_url; CREATE MATERIALIZED VIEW public.hits_by_url AS SELECT * FROM hits__v1`, contract: true, says: "not a view of this job"},
	} {
		t.Run(name, func(t *testing.T) {
			pool, _ := pgtest.New(t)
			made(t, pool, ref(1), hits())
			var contract json.RawMessage
			if c.contract {
				contract = switched(t, pool, to(1, hits(), nil))
			}
			exec(t, pool, c.sql)
			_, err := trySwitch(t.Context(), pool, to(1, hits(), contract))
			wantRefusal(t, err, job.ExitConflict, `"public"."hits_by_url"`, c.says)
		})
	}
}

func TestSwitchNamesTheMissingRight(t *testing.T) {
	t.Parallel()
	pool, dsn := pgtest.New(t)
	role := newRole(t, pool, "LOGIN PASSWORD 'x'")
	made(t, pool, ref(1), hits())
	contract := switched(t, pool, to(1, hits(), nil))
	exec(t, pool, "GRANT SELECT ON public.hits__v1 TO "+role)
	weak, err := pg.Open(t.Context(), pg.Config{DSN: pgtest.As(dsn, role, "x")})
	must(t, err)
	defer weak.Close()
	_, err = trySwitch(t.Context(), weak, to(1, hits(), contract))
	wantRefusal(t, err, job.ExitUnreachable, "CREATE", `"public"`)
	exec(t, pool, "GRANT CREATE ON SCHEMA public TO "+role)
	_, err = trySwitch(t.Context(), weak, to(1, hits(), contract))
	wantRefusal(t, err, job.ExitUnreachable, "belongs to", "GRANT ")
}

func TestSwitchRefusesGrantsThatCannotBe(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	made(t, pool, ref(1), hits())
	for privilege, role := range map[string]string{"select": "nobody_of_that_name", "insert": "public"} {
		c := to(1, hits(), nil)
		c.Grant = map[string][]string{privilege: {role}}
		_, err := trySwitch(t.Context(), pool, c)
		wantRefusal(t, err, job.ExitUsage, "serve.grant")
	}
	if got, err := store.Taken(t.Context(), pool, public); err != nil || got != "" {
		t.Errorf("a refused switch left a %s, %v", got, err)
	}
}

func TestSwitchRefusesAColumnThatChangedItsTypeSinceTheCheck(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	a, b := with(hits(), "extra", "bigint"), with(hits(), "extra", "text")
	made(t, pool, ref(1), a)
	made(t, pool, ref(2), b)
	contract := switched(t, pool, to(1, a, nil))
	_, err := trySwitch(t.Context(), pool, to(2, b, contract))
	wantRefusal(t, err, job.ExitUsage, `"extra"`, "bigint", "text")
}

func TestTakenSaysWhatStandsAtTheName(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	for want, sql := range map[string]string{
		"":                  "SELECT 1",
		"table":             "CREATE TABLE public.x (a int)",
		"view":              "CREATE VIEW public.x AS SELECT 1 AS a",
		"materialized view": "CREATE MATERIALIZED VIEW public.x AS SELECT 1 AS a",
		"sequence":          "CREATE SEQUENCE public.x",
		"partitioned table": "CREATE TABLE public.x (a int) PARTITION BY LIST (a)",
		"index":             "CREATE TABLE public.t (a int); CREATE INDEX x ON public.t (a)",
		"type":              "CREATE TYPE public.x AS ENUM ('a')",
	} {
		err := pool.ReadCommitted(t.Context(), func(tx *pg.Tx) error {
			exec(t, tx, sql)
			got, err := store.Taken(t.Context(), tx, job.ViewName{Schema: "public", Name: "x"})
			if err == nil && got != want {
				t.Errorf("%s: taken by %q, want %q", sql, got, want)
			}
			_, _ = tx.Exec(t.Context(), "ROLLBACK")
			return err
		})
		if err != nil && !strings.Contains(err.Error(), "commit") {
			t.Fatal(err)
		}
	}
}

func TestReplacingTheViewIsTheLastStatementOfASwitch(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	made(t, pool, ref(1), hits(), "/a")
	made(t, pool, ref(2), hits(), "/a")
	contract := switched(t, pool, to(1, hits(), nil))
	noted := false
	must(t, pool.ReadCommitted(t.Context(), func(tx *pg.Tx) error {
		return store.Switch(t.Context(), tx, to(2, hits(), contract), func(json.RawMessage) error {
			noted = true
			if got := text(t, tx, "SELECT pg_get_viewdef('public.hits_by_url'::regclass)"); strings.Contains(got, "__v2") {
				t.Error("the view reads v2 before the contract is noted")
			}
			return nil
		})
	}))
	if got := text(t, pool, "SELECT pg_get_viewdef('public.hits_by_url'::regclass)"); !noted || !strings.Contains(got, "__v2") {
		t.Errorf("noted: %v; the view is %s", noted, got)
	}
}
