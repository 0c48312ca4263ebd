package pg_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const tableList = `SELECT string_agg(table_name || '.' || column_name || ' ' || data_type, E'\n' ORDER BY table_name, ordinal_position)
	FROM information_schema.columns WHERE table_schema = $1`

func TestMigrationsRunOnceHoweverManyStartThem(t *testing.T) {
	t.Parallel()
	pool := open(t, pgtest.Empty(t), "")
	var missing *pg.SchemaError
	if err := pg.CheckSchema(t.Context(), pool); !errors.As(err, &missing) || !missing.Missing {
		t.Fatalf("before migration: %v, want a SchemaError that says missing", err)
	}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if err := pg.Migrate(t.Context(), pool, "1.2.3"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := pg.CheckSchema(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
}

func TestPrintedSQLMakesTheSchemaThatMigrateMakes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"kappactl", "other", "My Control-Schema"} {
		migrated, printed := open(t, pgtest.Empty(t), name), open(t, pgtest.Empty(t), name)
		if err := pg.Migrate(t.Context(), migrated, "it's 1"); err != nil {
			t.Fatal(err)
		}
		if err := pg.Migrate(t.Context(), migrated, "it's 1"); err != nil {
			t.Fatalf("again: %v", err)
		}
		text, err := pg.MigrationSQL(name, "it's 1")
		if err != nil {
			t.Fatal(err)
		}
		if err := printed.ReadCommitted(t.Context(), func(tx *pg.Tx) error {
			_, err := tx.Raw().Conn().PgConn().Exec(t.Context(), text).ReadAll()
			return err
		}); err != nil {
			t.Fatal(err)
		}
		var a, b string
		if err := migrated.QueryRow(t.Context(), tableList, name).Scan(&a); err != nil {
			t.Fatal(err)
		}
		if err := printed.QueryRow(t.Context(), tableList, name).Scan(&b); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(a, b); diff != "" {
			t.Errorf("schema %s: migrated and printed differ:\n%s", name, diff)
		}
		// The printed SQL leaves nothing for init to do.
		if err := pg.Migrate(t.Context(), printed, ""); err != nil {
			t.Errorf("schema %s: init after the printed SQL: %v", name, err)
		}
		for _, pool := range []*pg.Pool{migrated, printed} {
			var release string
			if err := pool.QueryRow(t.Context(), `SELECT release FROM kappactl.schema_info`).Scan(&release); err != nil || release != "it's 1" {
				t.Errorf("schema %s: written by release %q (%v)", name, release, err)
			}
		}
	}
}

func TestSchemaOfAnotherReleaseNamesWhatToRun(t *testing.T) {
	t.Parallel()
	pool := open(t, pgtest.Database(t), "")
	if _, err := pool.Exec(t.Context(), `UPDATE kappactl.schema_info SET version = 99, oldest_reader = 98, release = '3.0.0'`); err != nil {
		t.Fatal(err)
	}
	err := pg.CheckSchema(t.Context(), pool)
	want := fmt.Sprintf(`the control schema "kappactl" (version 99) is too new for this binary (version %d); use kappactl 3.0.0 or newer`, pg.SchemaVersion)
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	// What an older binary's init leaves as it is, above all.
	if err := pg.Migrate(t.Context(), pool, "0.9"); err != nil {
		t.Fatal(err)
	}
	if err := pg.CheckSchema(t.Context(), pool); err == nil || err.Error() != want {
		t.Errorf("after init of an older binary: %v, want %s", err, want)
	}
	// A newer schema that this binary may still use is no error: rolling upgrades work.
	if _, err := pool.Exec(t.Context(), `UPDATE kappactl.schema_info SET version = 99, oldest_reader = 1`); err != nil {
		t.Fatal(err)
	}
	if err := pg.CheckSchema(t.Context(), pool); err != nil {
		t.Error(err)
	}
}

func open(t *testing.T, dsn, schema string) *pg.Pool {
	t.Helper()
	pool, err := pg.Open(t.Context(), pg.Config{DSN: dsn, Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func TestAMigrationThatCannotLockItsTablesDoesNotHoldUpAgents(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Empty(t)
	pool := open(t, dsn, "")
	if err := pg.Migrate(t.Context(), pool, ""); err != nil {
		t.Fatal(err)
	}
	// As before the newest migration, which then alters or makes what a reader holds.
	reader := open(t, dsn, "")
	release, held, migrated := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- reader.ReadCommitted(t.Context(), func(tx *pg.Tx) error {
			if _, err := tx.Exec(t.Context(), `SELECT FROM kappactl.schema_info`); err != nil {
				return err
			}
			close(held)
			<-release
			return nil
		})
	}()
	<-held
	go func() {
		migrated <- pg.MigrateText(t.Context(), pool, `ALTER TABLE kappactl.schema_info ADD COLUMN probe integer`)
	}()
	for waiting := false; !waiting; {
		if err := pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'kappactl.schema_info'::regclass)`).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	// An agent's question queues behind the migration and is answered all the same, while the reader goes on.
	if _, err := pool.Exec(t.Context(), `SELECT FROM kappactl.schema_info`); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-migrated:
		t.Fatalf("the migration ended beside a reader: %v", err)
	default:
	}
	close(release)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if err := <-migrated; err != nil {
		t.Errorf("after the reader: %v", err)
	}
}
