// Package pgtest gives tests a real PostgreSQL: one server a test process, a fresh database a test.
//
// A package whose tests need it says so once:
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
// The server is that of KAPPACTL_TEST_DSN when set (make test starts one for all packages), otherwise one that the
// process starts on first use and ends by its pid.
package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/pg"
)

// EnvDSN names a server to use instead of starting one; its user must be a superuser.
const EnvDSN = "KAPPACTL_TEST_DSN"

// shared is the one server of this test process. Guarded by once; closed by Main.
var shared struct {
	once     sync.Once
	dsn      string // of the maintenance database
	template string
	stop     func()
	err      error
}

var databases atomic.Int64

// dropping holds the databases of ended tests. Each drop causes a checkpoint of the server, for which no test waits.
var dropping struct {
	sync.WaitGroup
	failed atomic.Bool
}

// Main runs the tests of a package and then ends the server that they started.
func Main(m *testing.M) {
	os.Exit(Run(m))
}

// Run is Main for a package that has more to close before it exits.
func Run(m *testing.M) int {
	code := m.Run()
	dropping.Wait()
	if code == 0 && dropping.failed.Load() {
		code = 1
	}
	if shared.stop != nil {
		shared.stop()
	}
	return code
}

// New gives the test a pool on a fresh database with the control schema, and that database's DSN.
func New(t testing.TB) (*pg.Pool, string) {
	t.Helper()
	dsn := Database(t)
	pool, err := pg.Open(t.Context(), pg.Config{DSN: dsn, MaxConns: 16})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool, dsn
}

// Database gives the test a fresh database with the control schema and returns its DSN.
func Database(t testing.TB) string {
	t.Helper()
	server(t)
	return create(t, shared.template)
}

// Empty gives the test a fresh database without the control schema and returns its DSN.
func Empty(t testing.TB) string {
	t.Helper()
	server(t)
	return create(t, "template0")
}

func create(t testing.TB, template string) string {
	t.Helper()
	name := fmt.Sprintf("t_%d_%d", os.Getpid(), databases.Add(1))
	if err := maintain(t.Context(), fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s", name, template)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		dropping.Go(func() { drop(name, 3*time.Minute) }) // it waits for all sessions of the server
	})
	return On(shared.dsn, name)
}

func drop(name string, limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := maintain(ctx, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		dropping.failed.Store(true)
	}
}

func server(t testing.TB) {
	t.Helper()
	shared.once.Do(func() {
		shared.err = begin()
	})
	if shared.err != nil {
		t.Fatalf("no PostgreSQL for this test: %v", shared.err)
	}
}

func begin() error {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if shared.dsn = os.Getenv(EnvDSN); shared.dsn == "" {
		own, err := Start(ctx)
		if err != nil {
			return err
		}
		shared.dsn, shared.stop = own.DSN, func() {
			if err := own.Stop(); err != nil {
				fmt.Fprintln(os.Stderr, "pgtest:", err)
			}
		}
	}
	shared.template = fmt.Sprintf("tmpl_%d", os.Getpid())
	if err := maintain(ctx, "CREATE DATABASE "+shared.template+" TEMPLATE template0"); err != nil {
		return err
	}
	if shared.stop == nil {
		shared.stop = func() { drop(shared.template, 20*time.Second) }
	}
	pool, err := pg.Open(ctx, pg.Config{DSN: On(shared.dsn, shared.template)})
	if err != nil {
		return err
	}
	defer pool.Close()
	return pg.Migrate(ctx, pool, "")
}

// maintain runs one statement in the maintenance database.
func maintain(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, shared.dsn)
	if err != nil {
		return fmt.Errorf("connect to the test server: %w", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}

// On returns dsn, a URL, with another database.
func On(dsn, database string) string {
	u := parse(dsn)
	u.Path = "/" + database
	return u.String()
}

// As returns dsn, a URL, with another user and password.
func As(dsn, user, password string) string {
	u := parse(dsn)
	u.User = url.UserPassword(user, password)
	q := u.Query()
	q.Del("passfile")
	u.RawQuery = q.Encode()
	return u.String()
}

func parse(dsn string) *url.URL {
	u, err := url.Parse(dsn)
	if err != nil {
		panic(fmt.Sprintf("the test server's DSN is no URL: %v", err))
	}
	return u
}
