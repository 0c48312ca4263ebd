package speedlayer

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

func mustJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func freeze(t *testing.T, pool *pg.Pool, ref job.Ref, l job.Layout, f ...job.Frozen) {
	t.Helper()
	inTx(t, pool, func(tx *pg.Tx) error { return Store{}.Freeze(t.Context(), tx, at(ref, l), f) })
}

func extend(t *testing.T, pool *pg.Pool, ref job.Ref, f ...job.Frozen) {
	t.Helper()
	inTx(t, pool, func(tx *pg.Tx) error { return Store{}.Extend(t.Context(), tx, ref, f) })
}

const segmentsByID = `SELECT left(topic_id::text, 2) AS topic, partition, from_offset, to_offset, state FROM kappactl.segment ORDER BY id`

func TestFreezeCutsSegmentsOldestFirstAndOnlyOnce(t *testing.T) {
	t.Parallel()
	pool, ref := fresh(t, counts(), job.Staged)
	f := []job.Frozen{frozen(1, 0, 10, 35, 10), frozen(1, 1, 5, 5, 0), frozen(2, 0, 0, 8, 10)}
	freeze(t, pool, ref, counts(), f...)
	want := []string{"(01,0,10,19,open)", "(02,0,0,8,open)", "(01,0,19,27,open)", "(01,0,27,35,open)"}
	if diff := cmp.Diff(want, lines(t, pool, segmentsByID)); diff != "" {
		t.Error(diff)
	}
	freeze(t, pool, ref, counts(), frozen(1, 0, 0, 99, 10))
	if diff := cmp.Diff(want, lines(t, pool, segmentsByID)); diff != "" {
		t.Errorf("frozen again: %s", diff)
	}
	got := lines(t, pool, `SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
		WHERE attrelid = 'public.pageviews__v1_staging'::regclass AND attnum > 0 ORDER BY attnum`)
	if diff := cmp.Diff([]string{"(_segment,bigint)", `(hour,"timestamp with time zone")`, "(user,text)", "(n,bigint)", `(top,"numeric(38,2)")`}, got); diff != "" {
		t.Errorf("staging: %s", diff)
	}
}

func TestExtendAddsWhatCameSinceAndNewPartitions(t *testing.T) {
	t.Parallel()
	pool, ref := fresh(t, counts(), job.Replaying)
	freeze(t, pool, ref, counts(), frozen(1, 0, 0, 10, 0))
	extend(t, pool, ref, frozen(1, 0, 4, 25, 10), frozen(1, 1, 0, 3, 0))
	extend(t, pool, ref, frozen(1, 0, 0, 7, 0)) // never back
	want := []string{"(01,0,0,10,open)", "(01,1,0,3,open)", "(01,0,10,18,open)", "(01,0,18,25,open)"}
	if diff := cmp.Diff(want, lines(t, pool, segmentsByID)); diff != "" {
		t.Error(diff)
	}
	ends := lines(t, pool, `SELECT partition, next, covers_from, frozen_end FROM kappactl.position ORDER BY partition`)
	if diff := cmp.Diff([]string{"(0,0,0,25)", "(1,0,0,3)"}, ends); diff != "" {
		t.Error(diff)
	}
}

// stage does what a worker does to a segment: rows and state in one transaction.
func stage(t *testing.T, pool *pg.Pool, from int64, records int, values string) {
	t.Helper()
	inTx(t, pool, func(tx *pg.Tx) error {
		n := 0
		if values != "" {
			tag, err := tx.Exec(t.Context(), `INSERT INTO public.pageviews__v1_staging
				SELECT s.id, v.* FROM kappactl.segment s, (VALUES `+values+`) AS v WHERE s.from_offset = `+itoa(from)+` AND s.partition = 0`)
			if err != nil {
				return err
			}
			n = int(tag.RowsAffected())
		}
		_, err := tx.Exec(t.Context(), `UPDATE kappactl.segment SET state = 'done', rows = $1, records = $2, dead_letters = 1,
			record_time = '2026-01-01T00:00:00Z', leader_epoch = 7 WHERE from_offset = $3 AND partition = 0`, n, records, from)
		return err
	})
}

func itoa(n int64) string { return strings.TrimSpace(job.Number(n).String()[1:]) }

func positions(t *testing.T, pool *pg.Pool, ref job.Ref) []job.Position {
	t.Helper()
	got, err := Store{}.Positions(t.Context(), pool, ref)
	for pg.Unreachable(err) && t.Context().Err() == nil { // a test that cuts connections cut ours
		got, err = Store{}.Positions(t.Context(), pool, ref)
	}
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestPositionsOfAReplayShowContiguousDoneSegmentsAndWhatRemains(t *testing.T) {
	t.Parallel()
	pool, ref := fresh(t, counts(), job.Replaying)
	freeze(t, pool, ref, counts(), frozen(1, 0, 0, 30, 10), frozen(1, 1, 4, 4, 0))
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	check := func(next, remaining, records int64, seen *time.Time) {
		t.Helper()
		got := positions(t, pool, ref)
		p := got[0]
		if p.Next != next || p.Remaining != remaining || p.Records != records || p.CoversFrom != 0 || p.FrozenEnd != 30 {
			t.Errorf("position %+v: want next %d, remaining %d, records %d", p, next, remaining, records)
		}
		if (seen == nil) != (p.RecordTime == nil) || (seen != nil && !seen.Equal(*p.RecordTime)) {
			t.Errorf("record time %v, want %v", p.RecordTime, seen)
		}
		if empty := got[1]; empty.Next != 4 || empty.Remaining != 0 || empty.ID != 1 || empty.TopicID != topicID(1) {
			t.Errorf("the empty partition: %+v", empty)
		}
	}
	check(0, 30, 0, nil)
	stage(t, pool, 10, 100, "")
	check(0, 20, 100, &at)
	stage(t, pool, 0, 100, "")
	check(20, 10, 200, &at)
	exec(t, pool, `UPDATE kappactl.segment SET state = 'failed', fault = 'gap', error = 'gone', fault_from = 21, fault_to = 25 WHERE from_offset = 20`, nil)
	want := job.Fault{Kind: job.FaultGap, Detail: "gone", From: 21, To: 25}
	if got := positions(t, pool, ref)[0].Fault; got != want {
		t.Errorf("fault %+v, want that of the segment %+v", got, want)
	}
}

func seal(t *testing.T, pool *pg.Pool, ref job.Ref) error {
	t.Helper()
	return pool.ReadCommitted(t.Context(), func(tx *pg.Tx) error { return Store{}.Seal(t.Context(), tx, job.Version{Ref: ref, Schema: "public"}) })
}

func TestFillMergesStagingAndSealMovesThePositions(t *testing.T) {
	t.Parallel()
	pool, ref := fresh(t, counts(), job.Building)
	freeze(t, pool, ref, counts(), frozen(1, 0, 0, 20, 10))
	stage(t, pool, 0, 4, `('2026-01-01 10:00Z'::timestamptz, 'a', 2, 1.5), (NULL, NULL, 1, NULL)`)
	stage(t, pool, 10, 6, `('2026-01-01 10:00Z'::timestamptz, 'a', 3, 0.5), (NULL, NULL, 4, 2)`)
	for range 2 { // repeatable
		if err := (Store{}).Fill(t.Context(), pool, at(ref, counts())); err != nil {
			t.Fatal(err)
		}
		want := []string{`("2026-01-01 10:00:00+00",a,5,1.50)`, "(,,5,2.00)"}
		if diff := cmp.Diff(want, lines(t, pool, `SELECT hour AT TIME ZONE 'UTC' || '+00' AS h, "user", n, top FROM public.pageviews__v1 ORDER BY hour`)); diff != "" {
			t.Fatal(diff)
		}
	}
	for range 2 {
		if err := seal(t, pool, ref); err != nil {
			t.Fatal(err)
		}
		p := positions(t, pool, ref)[0]
		if p.Next != 20 || p.Remaining != 0 || p.Records != 10 || p.DeadLetters != 2 || p.LeaderEpoch != 7 || p.RecordTime == nil {
			t.Fatalf("sealed position: %+v", p)
		}
	}
	if got := lines(t, pool, `SELECT to_regclass('public.pageviews__v1_staging') IS NULL`); got[0] != "(t)" {
		t.Error("staging is still there")
	}
	before := lines(t, pool, `SELECT * FROM public.pageviews__v1 ORDER BY hour`)
	if err := (Store{}).Fill(t.Context(), pool, at(ref, counts())); !errors.Is(err, ErrSealed) {
		t.Errorf("a late fill: %v, want ErrSealed", err)
	}
	err := pool.ReadCommitted(t.Context(), func(tx *pg.Tx) error {
		return Store{}.Extend(t.Context(), tx, ref, []job.Frozen{frozen(1, 0, 0, 40, 0)})
	})
	if !errors.Is(err, ErrSealed) {
		t.Errorf("a late extend: %v, want ErrSealed", err)
	}
	freeze(t, pool, ref, counts(), frozen(1, 0, 0, 20, 10))
	if diff := cmp.Diff(before, lines(t, pool, `SELECT * FROM public.pageviews__v1 ORDER BY hour`)); diff != "" {
		t.Errorf("late steps changed the table: %s", diff)
	}
}

func TestFillRefusesWhatIsNotTheWholeReplay(t *testing.T) {
	t.Parallel()
	const row = `(NULL::timestamptz, 'a', 2, 1.5)`
	for name, c := range map[string]struct{ spoil, want string }{
		"a segment is open":        {`UPDATE kappactl.segment SET state = 'open' WHERE from_offset = 10`, "t1/0 [10,20) is not covered exactly once"},
		"staged rows are missing":  {`DELETE FROM public.pageviews__v1_staging WHERE _segment = (SELECT min(id) FROM kappactl.segment)`, "has 0 staged rows"},
		"rows are staged twice":    {`INSERT INTO public.pageviews__v1_staging SELECT * FROM public.pageviews__v1_staging`, "has 2 staged rows"},
		"rows of nobody":           {`INSERT INTO public.pageviews__v1_staging SELECT 999, NULL, 'x', 1, 1`, "1 staged rows of segment 999"},
		"a segment is gone":        {`DELETE FROM kappactl.segment WHERE from_offset = 0`, "t1/0 [0,10) is not covered"},
		"a segment overlaps":       {`UPDATE kappactl.segment SET from_offset = 5 WHERE from_offset = 10`, "t1/0 [5,10) is not covered exactly once"},
		"the frozen end moved on":  {`UPDATE kappactl.position SET frozen_end = 21`, "t1/0 [20,21) is not covered"},
		"there are no positions":   {`DELETE FROM kappactl.position`, "no position was frozen"},
		"a done one says no count": {`UPDATE kappactl.segment SET rows = NULL WHERE from_offset = 10`, "not what it committed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, ref := fresh(t, counts(), job.Building)
			freeze(t, pool, ref, counts(), frozen(1, 0, 0, 20, 10))
			stage(t, pool, 0, 1, row)
			stage(t, pool, 10, 1, row)
			exec(t, pool, `INSERT INTO public.pageviews__v1 VALUES (NULL, 'old', 1, 1)`, nil)
			exec(t, pool, c.spoil, nil)
			err := Store{}.Fill(t.Context(), pool, at(ref, counts()))
			var incomplete *IncompleteError
			if !errors.As(err, &incomplete) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Fill = %v, want an IncompleteError with %q", err, c.want)
			}
			if got := lines(t, pool, `SELECT "user" FROM public.pageviews__v1`); len(got) != 1 || got[0] != "(old)" {
				t.Errorf("the table was touched: %v", got)
			}
		})
	}
}

// TestFillOfARollupWithoutKeysMakesOneRowOfWhatIsStagedAndNoneOfNothing: an aggregate over no rows would be a row of NULLs,
// which later commits cannot add to.
func TestFillOfARollupWithoutKeysMakesOneRowOfWhatIsStagedAndNoneOfNothing(t *testing.T) {
	t.Parallel()
	for staged, want := range map[string][]string{"": nil, "(2), (3)": {"(5)"}} {
		pool, ref := fresh(t, total(), job.Building)
		freeze(t, pool, ref, total(), frozen(1, 0, 0, 10, 10))
		rows := 0
		if staged != "" {
			rows = 2
		}
		stage(t, pool, 0, rows, staged)
		if err := (Store{}).Fill(t.Context(), pool, at(ref, total())); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, lines(t, pool, `SELECT n FROM public.pageviews__v1`), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("staged %q: %s", staged, diff)
		}
	}
}

func TestSealRefusesOpenSegments(t *testing.T) {
	t.Parallel()
	pool, ref := fresh(t, counts(), job.Building)
	freeze(t, pool, ref, counts(), frozen(1, 0, 0, 20, 10))
	stage(t, pool, 0, 1, "")
	var incomplete *IncompleteError
	if err := seal(t, pool, ref); !errors.As(err, &incomplete) {
		t.Fatalf("Seal = %v, want an IncompleteError", err)
	}
	if got := lines(t, pool, `SELECT next FROM kappactl.position`); got[0] != "(0)" {
		t.Errorf("next = %v, want it unmoved", got)
	}
}

func TestRemoveKeepsDeadLetters(t *testing.T) {
	t.Parallel()
	pool, ref := fresh(t, counts(), job.Retiring)
	freeze(t, pool, ref, counts(), frozen(1, 0, 0, 20, 10))
	inTx(t, pool, func(tx *pg.Tx) error {
		return writeLetters(t.Context(), tx, ref, []letter{{partition: frozen(1, 0, 0, 0, 0).Partition, offset: 4, reason: "not_json", key: nil, payload: []byte{0, 1}, size: 2}})
	})
	for range 2 {
		inTx(t, pool, func(tx *pg.Tx) error { return Store{}.Remove(t.Context(), tx, job.Version{Ref: ref, Schema: "public"}) })
	}
	left := lines(t, pool, `SELECT (SELECT count(*) FROM kappactl.position) AS a, (SELECT count(*) FROM kappactl.segment) AS b,
		(SELECT count(*) FROM kappactl.dead_letter WHERE key IS NULL AND payload = '\x0001') AS c, to_regclass('public.pageviews__v1_staging') IS NULL AS d`)
	if left[0] != "(0,0,1,t)" {
		t.Errorf("left (positions, segments, dead letters, no staging): %s", left[0])
	}
}

func TestFollowGivesANewPartitionAPositionOnce(t *testing.T) {
	t.Parallel()
	pool, ref := fresh(t, counts(), job.Live)
	for _, from := range []int64{0, 5} {
		inTx(t, pool, func(tx *pg.Tx) error { return Store{}.Follow(t.Context(), tx, ref, frozen(1, 2, from, 0, 0)) })
	}
	got := positions(t, pool, ref)
	if len(got) != 1 || got[0].Next != 0 || got[0].CoversFrom != 0 || got[0].FrozenEnd != 0 || got[0].ID != 2 {
		t.Errorf("positions %+v: want partition 2 at 0", got)
	}
}

// TestAStagingTableOfSomebodyElseIsLeftAlone: it was taken for ours, written to, and dropped with the version.
func TestAStagingTableOfSomebodyElseIsLeftAlone(t *testing.T) {
	t.Parallel()
	pool, ref := fresh(t, counts(), job.Staged)
	exec(t, pool, `CREATE TABLE public.pageviews__v1_staging (precious text); INSERT INTO public.pageviews__v1_staging VALUES ('mine')`, nil)
	err := pool.ReadCommitted(t.Context(), func(tx *pg.Tx) error {
		return Store{}.Freeze(t.Context(), tx, at(ref, counts()), []job.Frozen{frozen(1, 0, 0, 20, 10)})
	})
	var refusal *job.Refusal
	if !errors.As(err, &refusal) || !strings.Contains(refusal.Cause, "pageviews__v1_staging") || refusal.Code != job.ExitConflict {
		t.Errorf("Freeze = %v, want a refusal that names the table", err)
	}
	inTx(t, pool, func(tx *pg.Tx) error { return Store{}.Remove(t.Context(), tx, job.Version{Ref: ref, Schema: "public"}) })
	if got := lines(t, pool, `SELECT precious FROM public.pageviews__v1_staging`); len(got) != 1 {
		t.Errorf("the table holds %v", got)
	}
}

func TestPositionsOfManyVersionsAreReadAgainOnlyWhereTheyChanged(t *testing.T) {
	t.Parallel()
	pool, ref := fresh(t, counts(), job.Live)
	other := job.Ref{Job: ref.Job, Number: ref.Number + 1}
	newVersion(t, pool, other, counts(), job.Standby, "{}")
	for p := range int32(2) {
		for _, r := range []job.Ref{ref, other} {
			inTx(t, pool, func(tx *pg.Tx) error { return Store{}.Follow(t.Context(), tx, r, frozen(1, p, 5, 0, 0)) })
		}
	}
	known := map[job.Ref]job.Positions{ref: {}, other: {}}
	changed := func(after string, want ...job.Ref) {
		t.Helper()
		got, err := Store{}.PositionsOf(t.Context(), pool, known)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) {
			t.Errorf("after %s: %d versions changed, want %v", after, len(got), want)
		}
		for _, r := range want {
			if diff := cmp.Diff(positions(t, pool, r), got[r].All, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("after %s: %s", after, diff)
			}
			known[r] = got[r]
		}
	}
	changed("nothing", ref, other)
	changed("reading them")
	exec(t, pool, `UPDATE kappactl.position SET lease = clock_timestamp(), claim = claim + 1`, nil)
	changed("a claim")
	exec(t, pool, `UPDATE kappactl.position SET next = 6 WHERE number = @number AND partition = 1`, refArgs(other))
	changed("a commit", other)
	exec(t, pool, `UPDATE kappactl.position SET owner = 'b' WHERE number = @number`, refArgs(ref))
	changed("another owner", ref)
	exec(t, pool, `UPDATE kappactl.position SET frozen_end = 9 WHERE number = @number AND partition = 0`, refArgs(ref))
	changed("an open segment", ref)
	changed("looking at a replay", ref)
	exec(t, pool, `DELETE FROM kappactl.position WHERE number = @number`, refArgs(other))
	changed("the end of a version", ref, other)
}
