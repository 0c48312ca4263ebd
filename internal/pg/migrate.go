package pg

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing/fstest"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrations embed.FS

// SchemaVersion is the number of the newest migration in this binary. A binary works with a control schema whose
// oldest_reader is at most this number.
const SchemaVersion = 1

const versionTable = "goose_db_version"

// upMark is the first line of every migration.
const upMark = "-- +goose Up\n"

// Migrate creates the control schema or upgrades it to SchemaVersion, and records the release that did so, if known. It
// is safe to run concurrently: the second run waits.
func Migrate(ctx context.Context, p *Pool, release string) error {
	if err := CheckServer(ctx, p); err != nil {
		return err
	}
	db := stdlib.OpenDBFromPool(p.pool)
	defer db.Close()
	if err := migrate(ctx, db, p.schema); err != nil {
		return err
	}
	// An older binary, for which there was nothing to do, must not record its release.
	_, err := p.Exec(ctx, `UPDATE kappactl.schema_info SET release = @release WHERE version = @version
		AND release <> @release AND @release <> ''`,
		pgx.NamedArgs{"release": release, "version": SchemaVersion})
	if err != nil {
		return fmt.Errorf("migrate schema %s: record the release: %w", p.schema, err)
	}
	return nil
}

func migrate(ctx context.Context, db *sql.DB, s schema) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	defer conn.Close()
	// A transaction-level lock around the whole run works behind a pooler; a session lock would not.
	lock, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	defer func() { _ = lock.Rollback() }()
	if _, err := lock.ExecContext(ctx, `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, "kappactl migrate "+
		string(s)); err != nil {
		return fmt.Errorf("migrate: wait for another migration: %w", err)
	}
	if _, err := db.ExecContext(ctx, s.sql(createSchema)); err != nil {
		return fmt.Errorf("create schema %s: %w", s, err)
	}
	texts, err := migrationTexts()
	if err != nil {
		return err
	}
	return s.up(ctx, db, texts)
}

// up applies the pending migrations in the order of their file names.
func (s schema) up(ctx context.Context, db *sql.DB, texts map[string]string) error {
	provider, err := s.provider(db, texts)
	if err != nil {
		return err
	}
	for {
		_, err := provider.Up(ctx)
		var partial *goose.PartialError
		if errors.As(err, &partial) {
			err = partial.Err
		}
		switch {
		case err == nil:
			return nil
		case Code(err) != pgerrcode.LockNotAvailable:
			return fmt.Errorf("migrate schema %s: %w", s, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("migrate schema %s: other transactions hold locks on its tables (see pg_locks): %w", s, ctx.Err())
		case <-time.After(migrateRetry):
		}
	}
}

// A migration that waits for a lock makes every agent wait behind it. It therefore gives up after migrateLock and runs
// again after migrateRetry.
const (
	migrateLock  = "SET LOCAL lock_timeout = '2s';\n"
	migrateRetry = 500 * time.Millisecond
)

// The dot after createSchema lets schema.sql find the name.
const createSchema = `DO $$ BEGIN
	IF to_regnamespace(rtrim('kappactl.', '.')) IS NULL THEN EXECUTE 'CREATE SCHEMA ' || rtrim('kappactl.', '.'); END IF;
END $$`

func (s schema) provider(db *sql.DB, texts map[string]string) (*goose.Provider, error) {
	files := fstest.MapFS{}
	for name, text := range texts {
		files[name] = &fstest.MapFile{Data: []byte(strings.Replace(s.sql(text), upMark, upMark+migrateLock, 1))}
	}
	store, err := newVersions(s)
	if err != nil {
		return nil, err
	}
	provider, err := goose.NewProvider("", db, files, goose.WithStore(store), goose.WithDisableGlobalRegistry(true),
		goose.WithAllowOutofOrder(true)) // migrations of one release may be developed in parallel
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	return provider, nil
}

// migrationTexts returns the migrations of this binary by file name, for the default schema.
func migrationTexts() (map[string]string, error) {
	entries, err := migrations.ReadDir("migrations")
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	out := map[string]string{}
	for _, e := range entries {
		text, err := migrations.ReadFile("migrations/" + e.Name())
		if err != nil {
			return nil, fmt.Errorf("read migrations: %w", err)
		}
		out[e.Name()] = string(text)
	}
	return out, nil
}

// MigrationSQL returns the SQL that Migrate runs on an empty database, for people who want to read it or run it
// themselves.
func MigrationSQL(schemaName, release string) (string, error) {
	s := schema(cmp.Or(schemaName, DefaultSchema))
	texts, err := migrationTexts()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE SCHEMA IF NOT EXISTS %s;\n", Ident(string(s)))
	fmt.Fprintf(&b, `CREATE TABLE %s.%s (
    id         integer PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY,
    version_id bigint NOT NULL,
    is_applied boolean NOT NULL,
    tstamp     timestamp NOT NULL DEFAULT now()
);
`, Ident(string(s)), versionTable)
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		number, err := goose.NumericComponent(name)
		if err != nil {
			return "", fmt.Errorf("read migrations: %w", err)
		}
		up, _, _ := strings.Cut(s.sql(texts[name]), "-- +goose Down")
		b.WriteString(strings.TrimPrefix(up, upMark))
		fmt.Fprintf(&b, "INSERT INTO %s.%s (version_id, is_applied) VALUES (%d, true);\n", Ident(string(s)), versionTable,
			number)
	}
	fmt.Fprintf(&b, "UPDATE %s.schema_info SET release = '%s';\n", Ident(string(s)),
		strings.ReplaceAll(release, "'", "''"))
	return b.String(), nil
}

// SchemaError reports a control schema that this binary cannot use.
type SchemaError struct {
	Schema  string
	Missing bool
	Version int    // of the schema, if it exists
	Release string // the release that wrote it; empty if unknown
}

func (e *SchemaError) Error() string {
	switch {
	case e.Missing:
		return fmt.Sprintf("the control schema %q does not exist; create it with: kappactl init", e.Schema)
	case e.Version < SchemaVersion:
		return fmt.Sprintf("the control schema %q is at version %d and this binary needs %d; upgrade it with: kappactl init",
			e.Schema, e.Version, SchemaVersion)
	}
	use := "a newer kappactl"
	if e.Release != "" {
		use = fmt.Sprintf("kappactl %s or newer", e.Release)
	}
	return fmt.Sprintf("the control schema %q (version %d) is too new for this binary (version %d); use %s", e.Schema,
		e.Version, SchemaVersion, use)
}

// CheckSchema returns a *SchemaError if the control schema is missing, too old or too new for this binary.
func CheckSchema(ctx context.Context, p *Pool) error {
	var version, oldest int
	var release string
	err := p.QueryRow(ctx, `SELECT version, oldest_reader, release FROM kappactl.schema_info`).Scan(&version, &oldest,
		&release)
	switch code := Code(err); {
	case code == pgerrcode.UndefinedTable || code == pgerrcode.InvalidSchemaName:
		return &SchemaError{Schema: p.Schema(), Missing: true}
	case err != nil:
		return fmt.Errorf("read control schema: %w", err)
	case version < SchemaVersion || oldest > SchemaVersion:
		return &SchemaError{Schema: p.Schema(), Version: version, Release: release}
	}
	return nil
}
