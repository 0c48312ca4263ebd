package pg_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

// item is a row of the leased table that these tests make.
type item struct {
	ID    int
	Claim int64
	Owner *string
}

func leased(t *testing.T, wait bool) (*pg.Pool, pg.Leased) {
	t.Helper()
	pool, _ := pgtest.New(t)
	if _, err := pool.Exec(t.Context(), `CREATE TABLE item (id int PRIMARY KEY, claim bigint NOT NULL DEFAULT 0, owner text, lease timestamptz)`); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `INSERT INTO item (id) SELECT generate_series(1, 3)`); err != nil {
		t.Fatal(err)
	}
	return pool, pg.Leased{Table: "item", Key: "id", Order: "id", Columns: "id, claim, owner", Wait: wait}
}

func claim(t *testing.T, db pg.DB, l pg.Leased, owner string, ttl time.Duration, limit int) []item {
	t.Helper()
	got, err := pg.Claim[item](t.Context(), db, l, owner, ttl, limit, "r.id <= @max", pgx.NamedArgs{"max": 2})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestLeasedRowsHaveOneOwner(t *testing.T) {
	t.Parallel()
	pool, l := leased(t, false)
	if got := claim(t, pool, l, "a", time.Minute, 1); len(got) != 1 || got[0].ID != 1 || got[0].Claim != 1 {
		t.Fatalf("a's first claim: %+v, want row 1 with claim 1", got)
	}
	if got := claim(t, pool, l, "b", time.Minute, 5); len(got) != 1 || got[0].ID != 2 {
		t.Fatalf("b's claim: %+v, want what a left of the rows that match", got)
	}
	if got := claim(t, pool, l, "c", time.Minute, 5); len(got) != 0 {
		t.Fatalf("c's claim: %+v, want none", got)
	}
	kept, err := pg.Renew[item](t.Context(), pool, l, "a", time.Minute, "true", nil)
	if err != nil || len(kept) != 1 || kept[0].ID != 1 {
		t.Fatalf("a renews %+v, %v; want row 1", kept, err)
	}
	if err := pg.Release(t.Context(), pool, l, "a", "true", nil); err != nil {
		t.Fatal(err)
	}
	if got := claim(t, pool, l, "c", time.Minute, 5); len(got) != 1 || got[0].ID != 1 || got[0].Claim != 2 {
		t.Fatalf("after release: %+v, want row 1 with claim 2", got)
	}
}

func TestExpiredLeaseIsTakenAndItsOwnerFenced(t *testing.T) {
	t.Parallel()
	pool, l := leased(t, true)
	mine := claim(t, pool, l, "a", -time.Second, 1)[0]
	if got := claim(t, pool, l, "b", time.Minute, 1); len(got) != 1 || got[0].ID != 1 || got[0].Claim != mine.Claim+1 {
		t.Fatalf("b's claim of an expired lease: %+v", got)
	}
	if kept, err := pg.Renew[item](t.Context(), pool, l, "a", time.Minute, "true", nil); err != nil || len(kept) != 0 {
		t.Fatalf("a renews %+v, %v after it lost the row", kept, err)
	}
	tag, err := pool.Exec(t.Context(), `UPDATE item SET claim = claim WHERE id = 1 AND claim = $1`, mine.Claim)
	if err != nil || tag.RowsAffected() != 0 {
		t.Fatalf("a's write with its old claim: %v, %v; want 0 rows", tag, err)
	}
}

func TestClaimThatWaitsComesAfterTheCommitInFlight(t *testing.T) {
	t.Parallel()
	pool, l := leased(t, true)
	claim(t, pool, l, "a", -time.Second, 1)
	done := make(chan []item, 1)
	err := pool.ReadCommitted(t.Context(), func(tx *pg.Tx) error {
		if _, err := tx.Exec(t.Context(), `UPDATE item SET lease = lease WHERE id = 1`); err != nil {
			return err
		}
		go func() {
			got, err := pg.Claim[item](context.WithoutCancel(t.Context()), pool, l, "b", time.Minute, 1, "r.id = 1", nil)
			if err != nil {
				t.Error(err)
			}
			done <- got
		}()
		// b is seen waiting for the row before this transaction ends.
		for waiting := 0; waiting == 0; {
			if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting); err != nil {
				return err
			}
		}
		select {
		case got := <-done:
			t.Errorf("b claimed %+v while the row was locked", got)
		default:
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := <-done; len(got) != 1 || got[0].ID != 1 {
		t.Errorf("b's claim: %+v", got)
	}
}
