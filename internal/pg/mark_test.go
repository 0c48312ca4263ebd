package pg_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

// TestATransactionWhoseClientStandsStillInAStatementIsEndedByOthers: neither a limit of the statement nor one of idleness ends a COPY
// whose client sends nothing any more; who knows whose it is does.
func TestATransactionWhoseClientStandsStillInAStatementIsEndedByOthers(t *testing.T) {
	t.Parallel()
	other, dsn := pgtest.New(t)
	pool, err := pg.Open(t.Context(), pg.Config{DSN: dsn, Idle: 100 * time.Millisecond, Mark: "agent-a"})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := other.Exec(t.Context(), `CREATE TABLE staged (n integer)`); err != nil {
		t.Fatal(err)
	}
	rows, never := io.Pipe()
	defer never.Close()
	ended := make(chan error, 1)
	go func() {
		ctx := context.WithoutCancel(t.Context())
		ended <- pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
			if _, err := tx.Exec(ctx, `SELECT set_config('statement_timeout', '100ms', true)`); err != nil {
				return err
			}
			_, err := tx.Raw().Conn().PgConn().CopyFrom(ctx, io.MultiReader(strings.NewReader("1\n"), rows), `COPY staged (n) FROM STDIN`)
			return err
		})
	}()
	for standing := false; !standing; {
		err := other.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE datname = current_database() AND query LIKE 'COPY staged%' AND wait_event_type = 'Client' AND query_start < clock_timestamp() - interval '300ms')`).Scan(&standing)
		if err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			t.Fatalf("the COPY ended by itself (%v): there is nothing to end", err)
		default:
		}
	}
	end := func(older time.Duration, owners ...string) int {
		n, err := pg.EndStuck(t.Context(), other, owners, older)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := end(0, "agent-b", "agent-c") + end(time.Hour, "agent-a"); n != 0 {
		t.Errorf("%d transactions of others, or of a moment ago, were ended", n)
	}
	if n := end(0, "agent-b", "agent-a"); n != 1 {
		t.Fatalf("%d transactions were ended, want the one that stands still", n)
	}
	if err := <-ended; !pg.Unreachable(err) {
		t.Errorf("its client is told %v, want an error that counts as a lost server", err)
	}
	err = other.ReadCommitted(t.Context(), func(tx *pg.Tx) error {
		_, err := tx.Exec(t.Context(), `LOCK TABLE staged IN SHARE MODE`)
		return err
	})
	if err != nil {
		t.Errorf("what it had locked: %v", err)
	}
}

// TestWhatRunsInTheDatabaseIsNotEnded: it comes to its end, whatever becomes of its client.
func TestWhatRunsInTheDatabaseIsNotEnded(t *testing.T) {
	t.Parallel()
	other, dsn := pgtest.New(t)
	pool, err := pg.Open(t.Context(), pg.Config{DSN: dsn, Mark: "agent-a"})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	err = pool.ReadCommitted(t.Context(), func(tx *pg.Tx) error {
		var ended int
		err := tx.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'`).Scan(&ended)
		if err != nil || ended != 1 {
			t.Errorf("%d marks (%v), want one", ended, err)
		}
		running := make(chan error, 1)
		go func() {
			_, err := tx.Exec(t.Context(), `SELECT pg_sleep(0.5)`)
			running <- err
		}()
		for {
			select {
			case err := <-running:
				return err
			default:
			}
			asleep := false
			if err := other.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database())`).Scan(&asleep); err != nil {
				return err
			}
			if !asleep {
				continue
			}
			if n, err := pg.EndStuck(t.Context(), other, []string{"agent-a"}, 0); err != nil || n != 0 {
				t.Errorf("%d were ended (%v)", n, err)
			}
			return <-running
		}
	})
	if err != nil {
		t.Errorf("the transaction ended with %v", err)
	}
}
