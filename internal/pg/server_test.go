package pg_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgerrcode"

	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

// TestADatabaseInAnotherEncodingIsRefused: what a record holds could not be stored as it is.
func TestADatabaseInAnotherEncodingIsRefused(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Empty(t)
	maintenance := open(t, dsn, "")
	for _, encoding := range []string{"LATIN1", "SQL_ASCII"} {
		var name string
		if err := maintenance.QueryRow(t.Context(), `SELECT current_database() || $1::text`, "_"+strings.ToLower(encoding)).Scan(&name); err != nil {
			t.Fatal(err)
		}
		if _, err := maintenance.Exec(t.Context(), "CREATE DATABASE "+pg.Ident(name)+" ENCODING '"+encoding+"' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"); err != nil {
			t.Fatal(err)
		}
		pool, err := pg.Open(t.Context(), pg.Config{DSN: pgtest.On(dsn, name)})
		if err != nil {
			t.Fatal(err)
		}
		var server *pg.ServerError
		if err := pg.Migrate(t.Context(), pool, ""); !errors.As(err, &server) || !strings.Contains(server.Cause, encoding) || !strings.Contains(server.Cure, "UTF8") {
			t.Errorf("%s: %v", encoding, err)
		}
		pool.Close()
		if _, err := maintenance.Exec(t.Context(), "DROP DATABASE "+pg.Ident(name)); err != nil {
			t.Error(err)
		}
	}
}

// TestLongStatementsAreNotEndedByTimeoutsOfTheRole: a role or a database may have a statement_timeout for the sake of others.
func TestLongStatementsAreNotEndedByTimeoutsOfTheRole(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("options", "-c statement_timeout=100ms")
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20")
	pool, err := pg.Open(t.Context(), pg.Config{DSN: u.String(), MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	const slow = `SELECT pg_sleep(0.3)`
	long := pg.Long(t.Context())
	in := func(f func(tx *pg.Tx) error) error { return pool.ReadCommitted(t.Context(), f) }
	for name, err := range map[string]error{
		"alone": func() error { _, err := pool.Exec(long, slow); return err }(),
		"in a transaction": in(func(tx *pg.Tx) error {
			_, err := tx.Exec(long, slow)
			return err
		}),
		"rows in a transaction": in(func(tx *pg.Tx) error { return drain(tx.Query(long, slow)) }),
		"a row in a transaction": in(func(tx *pg.Tx) error {
			var done bool
			return tx.QueryRow(long, `SELECT pg_sleep(0.3) IS NOT NULL`).Scan(&done)
		}),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := pool.Exec(t.Context(), slow); pg.Code(err) != pgerrcode.QueryCanceled || !pg.TimedOut(err) {
		t.Errorf("a statement that is not long: %v", err)
	}
}
