package speedlayer

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

var v1, v2, v3 = job.Ref{Job: "pageviews", Number: 1}, job.Ref{Job: "pageviews", Number: 2}, job.Ref{Job: "pageviews", Number: 3}

// standing versions: v1 at 10 and 7, v2 at 4 and 9 of topic 1; v2 reads topic 2 too, v3 only that.
func twoVersions(t *testing.T) *pg.Pool {
	t.Helper()
	pool, _ := fresh(t, counts(), job.Live)
	newVersion(t, pool, v2, counts(), job.Verified, "")
	newVersion(t, pool, v3, counts(), job.Verified, "")
	inTx(t, pool, func(tx *pg.Tx) error {
		return errors.Join(
			Store{}.Follow(t.Context(), tx, v1, frozen(1, 0, 10, 0, 0)), Store{}.Follow(t.Context(), tx, v1, frozen(1, 1, 7, 0, 0)),
			Store{}.Follow(t.Context(), tx, v2, frozen(1, 0, 4, 0, 0)), Store{}.Follow(t.Context(), tx, v2, frozen(1, 1, 9, 0, 0)),
			Store{}.Follow(t.Context(), tx, v2, frozen(2, 0, 3, 0, 0)), Store{}.Follow(t.Context(), tx, v3, frozen(2, 0, 5, 0, 0)))
	})
	return pool
}

func hold(t *testing.T, pool *pg.Pool, by string, ttl time.Duration, a, b job.Ref) error {
	t.Helper()
	return pool.ReadCommitted(t.Context(), func(tx *pg.Tx) error { return Store{}.Hold(t.Context(), tx, by, ttl, a, b) })
}

func reached(t *testing.T, db pg.DB, by string, lock bool) bool {
	t.Helper()
	ok, err := Store{}.Reached(t.Context(), db, by, lock)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

const holds = `SELECT number, left(topic_id::text, 2), partition, hold, hold_by FROM kappactl.position ORDER BY topic_id, partition, number`

func TestHoldStopsBothVersionsAtTheFurtherOne(t *testing.T) {
	t.Parallel()
	pool := twoVersions(t)
	if err := hold(t, pool, "me", time.Minute, v1, v2); err != nil {
		t.Fatal(err)
	}
	want := []string{"(1,01,0,10,me)", "(2,01,0,10,me)", "(1,01,1,9,me)", "(2,01,1,9,me)", "(2,02,0,,)", "(3,02,0,,)"}
	if diff := cmp.Diff(want, lines(t, pool, holds)); diff != "" {
		t.Error(diff)
	}
	if reached(t, pool, "me", false) {
		t.Error("reached before the positions are there")
	}
	exec(t, pool, `UPDATE kappactl.position SET next = hold WHERE hold_by = 'me'`, nil)
	inTx(t, pool, func(tx *pg.Tx) error {
		if !reached(t, tx, "me", true) || reached(t, tx, "you", true) {
			t.Error("want reached by me and not by you")
		}
		return nil
	})
	for range 2 {
		if err := (Store{}).Release(t.Context(), pool, "me"); err != nil {
			t.Fatal(err)
		}
	}
	if reached(t, pool, "me", false) {
		t.Error("reached after the release")
	}
}

func TestABarrierOfSomebodyElseStandsUntilItExpires(t *testing.T) {
	t.Parallel()
	pool := twoVersions(t)
	if err := hold(t, pool, "me", time.Minute, v1, v2); err != nil {
		t.Fatal(err)
	}
	var held *HeldError
	if err := hold(t, pool, "you", time.Minute, v2, v3); !errors.As(err, &held) || held.By != "me" || held.Ref != v2 && held.Ref != v1 {
		t.Fatalf("Hold = %v, want a HeldError by me", err)
	}
	if err := hold(t, pool, "me", time.Minute, v1, v2); err != nil {
		t.Fatalf("my own barrier again: %v", err)
	}
	exec(t, pool, `UPDATE kappactl.position SET next = hold, hold_until = clock_timestamp() - interval '1 ms' WHERE hold_by = 'me'`, nil)
	if reached(t, pool, "me", false) {
		t.Error("an expired hold counts as reached")
	}
	if err := hold(t, pool, "you", time.Minute, v1, v2); err != nil {
		t.Errorf("over an expired barrier: %v", err)
	}
}

func TestVersionsWithoutACommonPartitionAreHeldWhereTheyStand(t *testing.T) {
	t.Parallel()
	pool := twoVersions(t)
	if err := hold(t, pool, "me", time.Minute, v1, v3); err != nil {
		t.Fatal(err)
	}
	want := []string{"(1,01,0,10,me)", "(2,01,0,,)", "(1,01,1,7,me)", "(2,01,1,,)", "(2,02,0,,)", "(3,02,0,5,me)"}
	if diff := cmp.Diff(want, lines(t, pool, holds)); diff != "" {
		t.Error(diff)
	}
	if !reached(t, pool, "me", false) {
		t.Error("want reached at once")
	}
}

func TestReachedJudgesTheClockAfterItHasTheLocks(t *testing.T) {
	t.Parallel()
	pool := twoVersions(t)
	if err := hold(t, pool, "me", 300*time.Millisecond, v1, v3); err != nil {
		t.Fatal(err)
	}
	locked, expired := make(chan struct{}), make(chan error, 1)
	go func() {
		expired <- pool.ReadCommitted(t.Context(), func(tx *pg.Tx) error {
			if err := lockPositions(t.Context(), tx, v1); err != nil {
				return err
			}
			close(locked)
			_, err := tx.Exec(t.Context(), `SELECT pg_sleep(greatest(0, extract(epoch FROM max(hold_until) - clock_timestamp())) + 0.05) FROM kappactl.position`)
			return err
		})
	}()
	<-locked
	inTx(t, pool, func(tx *pg.Tx) error {
		if reached(t, tx, "me", true) {
			t.Error("the hold expired while the locks were waited for, and still counts")
		}
		return nil
	})
	if err := <-expired; err != nil {
		t.Fatal(err)
	}
}
