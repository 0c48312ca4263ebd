package serving

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

// lambda is a layout of a version of mode lambda.
func lambda(l job.Layout) job.Layout {
	l.Lambda = true
	return l
}

// layered makes a version of mode lambda with its indexes.
func layered(t *testing.T, db pg.DB, l job.Layout) job.Version {
	t.Helper()
	v := version(ref(1), "public", lambda(l))
	must(t, store.Create(t.Context(), db, v))
	must(t, store.Index(t.Context(), db, v))
	return v
}

// added makes a generation and attaches it, as a run does.
func added(t *testing.T, db *pg.Pool, v job.Version, generation int) {
	t.Helper()
	must(t, store.CreateMember(t.Context(), db, v, generation))
	must(t, store.IndexMember(t.Context(), db, v, generation))
	must(t, store.Attach(t.Context(), db, v, generation))
}

// served are the rows of a version as readers see them, one text a row, sorted.
func served(t *testing.T, db pg.DB, v job.Version) string {
	t.Helper()
	return text(t, db, "SELECT q::text FROM ("+store.Select(v)+") AS q ORDER BY 1")
}

// hitRow is an INSERT of one row of hits; last is the value of its last column, the generation or the epoch.
func hitRow(table, hour, url string, views int, last string) string {
	return fmt.Sprintf("INSERT INTO %s VALUES (%s, %s, %d, %[4]d, %[5]s);", table, hour, url, views, last)
}

func TestTheViewMergesTheLiveGenerationWithItsEpochsAndLaterOnes(t *testing.T) { // pitfalls 5, 17 and 18
	t.Parallel()
	pool, _ := pgtest.New(t)
	l := hits()
	l.Where = "views >= 5" // above the merge: below it in each layer
	v := layered(t, pool, l)
	added(t, pool, v, 1)
	const ten, eleven = "'2026-01-01 10:00Z'", "'2026-01-01 11:00Z'"
	exec(t, pool, "SET timezone = 'UTC'")
	exec(t, pool, hitRow("hits__v1_g0", ten, "'/both'", 3, "0")+hitRow("hits__v1_g0", ten, "'/batch'", 7, "0")+
		hitRow("hits__v1_g0", "NULL", "NULL", 4, "0")+hitRow("hits__v1_g0", ten, "'/few'", 4, "0")+
		hitRow("hits__v1_g1", ten, "'/both'", 5, "1")+hitRow("hits__v1_g1", "NULL", "NULL", 5, "1")+hitRow("hits__v1_g1", ten, "'/batch'", 7, "1")+
		hitRow("hits__v1", ten, "'/both'", 2, "0")+hitRow("hits__v1", "NULL", "NULL", 1, "0")+
		hitRow("hits__v1", eleven, "'/speed'", 6, "1")+hitRow("hits__v1", ten, "'/both'", 10, "1"))
	zero := strings.Join([]string{
		`(,,5,5.00)`, `(/batch,"2026-01-01 10:00:00+00",7,7.00)`, `(/both,"2026-01-01 10:00:00+00",15,15.00)`, `(/speed,"2026-01-01 11:00:00+00",6,6.00)`,
	}, "\n")
	if got := served(t, pool, v); got != zero {
		t.Errorf("generation 0 with epochs 0 and 1:\n%s\nwant\n%s", got, zero)
	}
	exec(t, pool, "UPDATE hits__v1_gen SET generation = 1 WHERE generation = 0")
	if got := served(t, pool, v); got != zero {
		t.Errorf("generation 1 with epoch 1:\n%s\nwant\n%s", got, zero)
	}
	exec(t, pool, "DELETE FROM hits__v1 WHERE _epoch < 1")
	if got := served(t, pool, v); got != zero {
		t.Errorf("without the older epoch:\n%s", got)
	}
}

func TestARollupWithoutKeysHasItsOneRowInBothLayers(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	l := job.Layout{
		Shape:  job.Rollup,
		States: []job.StateColumn{{Name: "n", Type: "bigint", Combine: `t."n" + e."n"`, Aggregate: `coalesce(sum(e."n"), 0)::bigint`}},
		View:   []job.ViewColumn{{Name: "n", Type: "bigint", Finish: `s."n"`}},
	}
	v := layered(t, pool, l)
	if got := served(t, pool, v); got != "(0)" {
		t.Errorf("before the first record: %s", got)
	}
	exec(t, pool, "INSERT INTO hits__v1_g0 VALUES (3); INSERT INTO hits__v1 VALUES (4, 0), (5, 1)")
	if got := served(t, pool, v); got != "(12)" {
		t.Errorf("got %s", got)
	}
	if _, err := pool.Exec(t.Context(), "INSERT INTO hits__v1 VALUES (4, 0)"); err == nil {
		t.Error("an epoch has two rows")
	}
}

func TestThePointerAlwaysHasOneRow(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	layered(t, pool, hits())
	exec(t, pool, "DELETE FROM hits__v1_gen")
	for _, sql := range []string{
		"INSERT INTO hits__v1_gen (generation) VALUES (1)", "INSERT INTO hits__v1_gen VALUES (false, 1)", "INSERT INTO hits__v1_gen VALUES (NULL, 1)",
		"UPDATE hits__v1_gen SET generation = NULL",
	} {
		if _, err := pool.Exec(t.Context(), sql); err == nil {
			t.Errorf("%s: no error", sql)
		}
	}
	if got := text(t, pool, "SELECT generation::text FROM hits__v1_gen"); got != "0" {
		t.Errorf("the pointer holds %q", got)
	}
	if got := text(t, pool, `SELECT string_agg(x.privilege_type, ',' ORDER BY 1) FROM pg_class c, aclexplode(c.relacl) x
		WHERE c.relname = 'hits__v1_gen' AND x.privilege_type IN ('DELETE', 'TRUNCATE', 'UPDATE')`); got != "UPDATE" {
		t.Errorf("its owner's rights are %s", got)
	}
}

// explained is how PostgreSQL runs a statement, with what it really did.
func explained(t *testing.T, db pg.DB, sql string) string {
	t.Helper()
	return text(t, db, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) "+sql)
}

func TestReadersOfTheMergedViewUseTheIndexesOfTheLiveLayersOnly(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	v := layered(t, pool, hits())
	added(t, pool, v, 1)
	added(t, pool, v, 2)
	for table, last := range map[string]int{"hits__v1_g0": 0, "hits__v1_g1": 1, "hits__v1_g2": 2, "hits__v1": 1} {
		exec(t, pool, fmt.Sprintf(`INSERT INTO %s SELECT '2026-01-01 00:00Z'::timestamptz + interval '1 hour' * (i / 100), '/' || i %% 100, i, i, %d
			FROM generate_series(1, 20000) i`, table, last))
	}
	exec(t, pool, "UPDATE hits__v1_gen SET generation = 1")
	must(t, store.Analyze(t.Context(), pool, v))
	switched(t, pool, job.ViewChange{View: public, To: ref(1), Layout: lambda(hits())})
	for what, sql := range map[string]string{
		"point": `SELECT * FROM hits_by_url WHERE hour = '2026-01-03 04:00Z' AND url = '/7'`,
		"list":  `SELECT * FROM hits_by_url WHERE hour = '2026-01-03 04:00Z' AND url = ANY ('{/1,/2,/3}')`,
		"first": `SELECT * FROM hits_by_url ORDER BY hour LIMIT 5`,
		"join": `SELECT v.* FROM (VALUES ('2026-01-03 04:00Z'::timestamptz, '/7'), ('2026-01-03 05:00Z', '/8')) AS k(hour, url),
			LATERAL (SELECT * FROM hits_by_url h WHERE h.hour = k.hour AND h.url = k.url OFFSET 0) AS v`,
	} {
		plan := explained(t, pool, sql)
		if strings.Contains(plan, "Seq Scan on hits__v1 ") || strings.Contains(plan, "Seq Scan on hits__v1_g1") {
			t.Errorf("%s reads a whole layer:\n%s", what, plan)
		}
		for _, line := range strings.Split(plan, "\n") {
			other := strings.Contains(line, "hits__v1_g0") || strings.Contains(line, "hits__v1_g2")
			if other && strings.Contains(line, "Scan") && !strings.Contains(line, "never executed") {
				t.Errorf("%s executes another generation: %s\n%s", what, line, plan)
			}
		}
	}
}

func TestAVersionsThreeRelationsAreMadeReadAndDroppedTogether(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	l := hits()
	l.Indexes = [][]string{{"url"}}
	v := layered(t, pool, l)
	added(t, pool, v, 1)
	must(t, store.CreateMember(t.Context(), pool, v, 2)) // of a run that was interrupted
	must(t, store.Create(t.Context(), pool, v))
	must(t, store.Analyze(t.Context(), pool, v))
	for _, name := range []string{"hits__v1", "hits__v1_g0", "hits__v1_g1"} {
		if got := text(t, pool, "SELECT count(*)::text FROM pg_indexes WHERE tablename = $1", name); got != "2" {
			t.Errorf("%s has %s indexes", name, got)
		}
	}
	if got := text(t, pool, "SELECT reloptions::text FROM pg_class WHERE relname = 'hits__v1'"); !strings.Contains(got, "vacuum_truncate=false") {
		t.Errorf("options of the table: %s", got)
	}
	added, err := store.Additions(t.Context(), pool, ref(1), public, v.Layout)
	if must(t, err); len(added) > 0 {
		t.Errorf("people added %v", added)
	}
	for _, read := range []string{"hits__v1", "hits__v1_batch", "hits__v1_gen", "hits__v1_g1", "hits__v1_g2"} {
		exec(t, pool, "CREATE VIEW mine AS SELECT * FROM "+read)
		names, err := store.Dependants(t.Context(), pool, v, public)
		if must(t, err); strings.Join(names, ",") != "view mine" {
			t.Errorf("%s is read by %v", read, names)
		}
		wantRefusal(t, store.Drop(t.Context(), pool, v), job.ExitConflict, "mine")
		exec(t, pool, "DROP VIEW mine")
	}
	exec(t, pool, "CREATE TABLE public.hits__v1_g3 (x int); CREATE TABLE public.hits__v1_gen2 (x int)")
	wantRefusal(t, store.Drop(t.Context(), pool, v), job.ExitConflict, "hits__v1_g3", "not made by kappactl")
	exec(t, pool, "DROP TABLE public.hits__v1_g3")
	must(t, store.Drop(t.Context(), pool, v))
	must(t, store.Drop(t.Context(), pool, v))
	if got := text(t, pool, "SELECT relname::text FROM pg_class WHERE relname LIKE 'hits\\_\\_v1%'"); got != "hits__v1_gen2" {
		t.Errorf("left are %s", got)
	}
	if got := text(t, pool, "SELECT count(*)::text FROM pg_proc WHERE proname LIKE 'hits\\_\\_v1%'"); got != "0" {
		t.Errorf("%s functions are left", got)
	}
}

func TestAForeignRelationOfALayersNameIsRefused(t *testing.T) {
	t.Parallel()
	v := version(ref(1), "public", lambda(hits()))
	for _, name := range []string{"hits__v1", "hits__v1_batch", "hits__v1_gen", "hits__v1_g0", "hits__v1_known"} {
		pool, _ := pgtest.New(t)
		made := "CREATE TABLE public." + name + " (x int)"
		if name == "hits__v1_known" {
			made = "CREATE FUNCTION public." + name + "() RETURNS integer LANGUAGE sql AS 'SELECT 7'"
		}
		exec(t, pool, made)
		wantRefusal(t, store.Create(t.Context(), pool, v), job.ExitConflict, name, "was not made for")
		wantRefusal(t, store.Preflight(t.Context(), pool, public, ref(1), v.Layout, nil), job.ExitConflict, name)
		if name != "hits__v1" { // no name of a version of mode kappa
			plain := version(ref(1), "public", hits())
			must(t, store.Create(t.Context(), pool, plain))
			must(t, store.Drop(t.Context(), pool, plain))
		}
	}
}

func TestAViewThatIsLeftSaysSoOnAllItsTables(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	v := layered(t, pool, hits())
	switched(t, pool, job.ViewChange{View: public, To: ref(1), Layout: v.Layout})
	must(t, pool.ReadCommitted(t.Context(), func(tx *pg.Tx) error { return store.LeaveView(t.Context(), tx, public, ref(1)) }))
	if got := text(t, pool, `SELECT count(*)::text FROM pg_class c WHERE obj_description(c.oid, 'pg_class') LIKE 'Read by view public.hits_by_url.%'`); got != "4" {
		t.Errorf("%s tables say so", got)
	}
	if got := text(t, pool, `SELECT string_agg(obj_description(oid), ' ') FROM pg_proc WHERE proname = 'hits__v1_known'`); !strings.HasPrefix(got, "Read by view ") {
		t.Errorf("the function says: %s", got)
	}
}

func TestReadersKeepTheirRightsAcrossModes(t *testing.T) {
	t.Parallel()
	pool, dsn := pgtest.New(t)
	reader := newRole(t, pool, "LOGIN PASSWORD 'r'")
	made(t, pool, ref(1), hits(), "/a")
	contract := switched(t, pool, to(1, hits(), nil))
	exec(t, pool, "GRANT SELECT ON hits_by_url TO "+reader+"; GRANT SELECT ON hits__v1 TO "+reader+"; ALTER VIEW hits_by_url SET (security_invoker = true)")
	contract = switched(t, pool, to(1, hits(), contract))
	v := version(ref(2), "public", lambda(hits()))
	must(t, store.Create(t.Context(), pool, v))
	must(t, store.Index(t.Context(), pool, v))
	exec(t, pool, hitRow("hits__v2_g0", "'2026-01-01 10:00Z'", "'/a'", 2, "0"))
	contract = switched(t, pool, to(2, v.Layout, contract))
	reads := func(want string) {
		t.Helper()
		c, err := pgx.ParseConfig(dsn)
		must(t, err)
		c.User, c.Password = reader, "r"
		conn, err := pgx.ConnectConfig(t.Context(), c)
		must(t, err)
		defer conn.Close(t.Context())
		var got string
		must(t, conn.QueryRow(t.Context(), "SELECT views::text FROM hits_by_url").Scan(&got))
		if got != want {
			t.Errorf("the reader sees %s, want %s", got, want)
		}
	}
	reads("2")
	added(t, pool, v, 1)
	exec(t, pool, hitRow("hits__v2_g1", "'2026-01-01 10:00Z'", "'/a'", 3, "1")+"UPDATE hits__v2_gen SET generation = 1")
	reads("3")
	switched(t, pool, to(1, hits(), contract))
	reads("1")
}

func TestAGenerationIsDetachedOnceAndDropped(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	v := layered(t, pool, hits())
	added(t, pool, v, 1)
	exec(t, pool, "UPDATE hits__v1_gen SET generation = 1")
	for range 2 {
		must(t, store.Attach(t.Context(), pool, v, 1))
		must(t, store.Detach(t.Context(), pool, v, 0))
		must(t, store.DropMember(t.Context(), pool, v, 0))
	}
	members, err := Members(t.Context(), pool, v)
	if must(t, err); len(members) != 1 || members[1] != (Member{Generation: 1}) {
		t.Errorf("members %v", members)
	}
	if got := text(t, pool, "SELECT count(*)::text FROM pg_class WHERE relname = 'hits__v1_g0'"); got != "0" {
		t.Error("the table of the generation is there still")
	}
}

// TestAStatementThatWasPlannedBeforeAGenerationCameMissesNoRows: a session that holds a lock on the batch table does not notice
// an ATTACH before it plans a prepared statement again, and a cached plan is not made again.
func TestAStatementThatWasPlannedBeforeAGenerationCameMissesNoRows(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"force_generic_plan", "force_custom_plan", "auto"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			pool, dsn := pgtest.New(t)
			v := layered(t, pool, hits())
			exec(t, pool, hitRow("hits__v1_g0", "'2026-01-01 10:00Z'", "'/a'", 7, "0"))
			conn, err := pgx.Connect(t.Context(), dsn)
			must(t, err)
			defer conn.Close(t.Context())
			sees := func(when string) {
				t.Helper()
				var got string
				must(t, conn.QueryRow(t.Context(), "EXECUTE q", pgx.QueryExecModeSimpleProtocol).Scan(&got))
				if got != "7 of 1" {
					t.Errorf("%s the reader sees %s, want 7 of 1", when, got)
				}
			}
			_, err = conn.Exec(t.Context(), "SET plan_cache_mode = "+mode+"; PREPARE q AS SELECT sum(views) || ' of ' || count(*) FROM ("+
				store.Select(v)+") AS q; BEGIN ISOLATION LEVEL READ COMMITTED")
			must(t, err)
			for range 3 {
				sees("before")
			}
			for generation := 1; generation <= 2; generation++ {
				added(t, pool, v, generation)
				exec(t, pool, hitRow(fmt.Sprintf("hits__v1_g%d", generation), "'2026-01-01 10:00Z'", "'/a'", 7, fmt.Sprint(generation)))
				must(t, pool.ReadCommitted(t.Context(), func(tx *pg.Tx) error {
					_, err := store.Show(t.Context(), tx, v, generation-1, generation)
					return err
				}))
				sees(fmt.Sprintf("after flip %d", generation))
			}
			_, err = conn.Exec(t.Context(), "COMMIT")
			must(t, err)
			exec(t, pool, "UPDATE hits__v1_g2 SET views = 9") // a new statement reads the newest one
			if got := served(t, pool, v); !strings.Contains(got, "9") {
				t.Errorf("a new transaction sees %s", got)
			}
			must(t, store.Attach(t.Context(), pool, v, 1)) // by an agent that was overtaken
			if got := served(t, pool, v); !strings.Contains(got, "9") {
				t.Errorf("after an older generation was attached again: %s", got)
			}
		})
	}
}
