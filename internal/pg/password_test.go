package pg_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/certtest"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

// roleWithPassword gives the role of a PostgreSQL that asks for passwords over TLS a password.
func roleWithPassword(t *testing.T, password string) (dsn string, admin *pgx.Conn, role string) {
	t.Helper()
	dsn = overTLS(t)
	admin, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Close(context.WithoutCancel(t.Context())) })
	parsed, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	alter(t, admin, parsed.User, password)
	return dsn, admin, parsed.User
}

// overTLS is a server of this test's own that takes connections over TLS only; it is ready when it does.
func overTLS(t *testing.T) string {
	t.Helper()
	dsn := with(t, pgtest.WithTLS(t, certtest.Make(t, "client", "localhost")), "localhost", "sslmode=require")
	for range 100 { // a reload of the server's settings is not at once
		if conn, err := pgx.Connect(t.Context(), dsn); err == nil {
			_ = conn.Close(t.Context())
			return dsn
		}
	}
	t.Fatal("the server does not take connections over TLS")
	return ""
}

func alter(t *testing.T, admin *pgx.Conn, role, password string) {
	t.Helper()
	if _, err := admin.Exec(t.Context(), "ALTER ROLE "+pg.Ident(role)+" PASSWORD '"+password+"'"); err != nil {
		t.Fatal(err)
	}
}

func TestARotatedPasswordReachesNewConnections(t *testing.T) {
	t.Parallel()
	dsn, admin, role := roleWithPassword(t, "first")
	var password atomic.Value
	password.Store("first")
	broken := errors.New("the vault is sealed")
	source := func(context.Context) (string, error) {
		if text, _ := password.Load().(string); text != "" {
			return text, nil
		}
		return "", broken
	}
	pool, err := pg.Open(t.Context(), pg.Config{DSN: dsn, Password: source})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	cut := func() {
		if _, err := admin.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE application_name = 'kappactl' AND pid <> pg_backend_pid()`); err != nil {
			t.Fatal(err)
		}
	}
	ask := func() error {
		_, err := pool.Exec(t.Context(), `SELECT 1`)
		return err
	}
	alter(t, admin, role, "second")
	cut()
	for range 20 { // the first may still meet a connection that was ended
		if err = ask(); err != nil && !pg.Unreachable(err) {
			t.Fatalf("a refused password counts as a failed statement: %v", err)
		}
	}
	if err == nil {
		t.Fatal("the old password is still taken")
	}
	password.Store("")
	if err := ask(); !errors.Is(err, broken) || !pg.Unreachable(err) {
		t.Errorf("with a broken source: %v", err)
	}
	password.Store("second")
	if err := ask(); err != nil {
		t.Errorf("with the new password: %v", err)
	}
}

// A server that never hears that its client leaves is what a TLS connection comes to after a cancelled write.
func TestClosingDoesNotWaitForAServerThatHearsNothing(t *testing.T) {
	t.Parallel()
	pool, err := pg.Open(t.Context(), pg.Config{DSN: swallowing(t, pgtest.Database(t), "nobody_hears")})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := pool.Exec(ctx, `SELECT 1 AS nobody_hears`); err == nil {
		t.Fatal("the statement was answered")
	}
	began := time.Now()
	pool.Close()
	if took := time.Since(began); took > 8*time.Second { // 15 s when pgx waits for the end of the connection
		t.Errorf("took %s", took)
	}
}
