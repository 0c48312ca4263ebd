package pgtest

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/devstack/postgres"
	"github.com/kappactl/kappactl/internal/pg"
)

// Own is the server of a single test, which may crash it. Unlike the shared server it loses no acknowledged commit.
type Own struct {
	// DSN connects to a database with the control schema, as a superuser. It is the same after each start.
	DSN string

	config postgres.Config
	server *postgres.Server
}

// StartOwn starts a server that ends with the test.
func StartOwn(t testing.TB) *Own {
	t.Helper()
	bin, err := postgres.Find(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	folder, err := postgres.TempFolder()
	if err != nil {
		t.Fatal(err)
	}
	o := &Own{config: postgres.Config{
		Bin: bin, Data: folder, DieWithParent: true,
		Settings: map[string]string{"fsync": "off", "shared_buffers": "32MB", "max_connections": "100"},
	}}
	t.Cleanup(func() {
		if o.server != nil {
			if err := o.server.Stop(); err != nil {
				t.Error(err)
			}
		}
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	o.Start(t)
	if err := o.server.EnsureDatabase(t.Context(), "own"); err != nil {
		t.Fatal(err)
	}
	o.DSN = o.server.DSN("own")
	pool, err := pg.Open(t.Context(), pg.Config{DSN: o.DSN})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := pg.Migrate(t.Context(), pool, ""); err != nil {
		t.Fatal(err)
	}
	return o
}

// Crash stops the server as pg_ctl stop -m immediate does: nothing is flushed, every session is dropped.
func (o *Own) Crash(t testing.TB) {
	t.Helper()
	if err := syscall.Kill(o.server.PID(), syscall.SIGQUIT); err != nil {
		t.Fatalf("stop PostgreSQL at once: %v", err)
	}
	select {
	case <-o.server.Done():
	case <-time.After(time.Minute):
		t.Fatal("PostgreSQL did not stop at once")
	}
	o.server = nil
}

// Start starts the server, on the same port when it ran before.
func (o *Own) Start(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s, err := postgres.Start(ctx, o.config)
	if err != nil {
		t.Fatal(err)
	}
	if o.config.Port != 0 && s.Port() != o.config.Port {
		t.Fatal(fmt.Errorf("port %d was taken while the server was away", o.config.Port))
	}
	o.config.Port, o.server = s.Port(), s
}
