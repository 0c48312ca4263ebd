package pg_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

// swallowing is a way to a server on which a connection that says word carries nothing any more, while both ends stay open.
func swallowing(t *testing.T, dsn, word string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	t.Cleanup(open.Wait)
	t.Cleanup(func() { _ = l.Close() })
	target := u.Host
	open.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				_ = client.Close()
				continue
			}
			open.Go(func() { _, _ = io.Copy(client, server) })
			open.Go(func() {
				defer client.Close()
				defer server.Close()
				buf, swallowed := make([]byte, 64<<10), false
				for {
					n, err := client.Read(buf)
					if err != nil {
						return
					}
					if swallowed = swallowed || bytes.Contains(buf[:n], []byte(word)); !swallowed {
						_, _ = server.Write(buf[:n])
					}
				}
			})
		}
	})
	u.Host = l.Addr().String()
	return u.String()
}

// TestALongStatementIsGivenUpWhenNobodyWorksOnIt: nothing passes, nothing ends, and the network acknowledges every packet.
func TestALongStatementIsGivenUpWhenNobodyWorksOnIt(t *testing.T) {
	t.Parallel()
	pool, err := pg.Open(t.Context(), pg.Config{DSN: swallowing(t, pgtest.Database(t), "nobody_hears"), Mark: "a", Answer: 400 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close) // after the subtests
	in := func(f func(context.Context, *pg.Tx) error) func(context.Context) error {
		return func(ctx context.Context) error {
			return pool.ReadCommitted(ctx, func(tx *pg.Tx) error { return f(ctx, tx) })
		}
	}
	const lost, long = `SELECT 1 AS nobody_hears`, `SELECT 1 FROM pg_sleep(1.2)`
	for name, ask := range map[string]func(sql string) func(context.Context) error{
		"exec": func(sql string) func(context.Context) error {
			return func(ctx context.Context) error { _, err := pool.Exec(ctx, sql); return err }
		},
		"exec in a transaction": func(sql string) func(context.Context) error {
			return in(func(ctx context.Context, tx *pg.Tx) error { _, err := tx.Exec(ctx, sql); return err })
		},
		"query in a transaction": func(sql string) func(context.Context) error {
			return in(func(ctx context.Context, tx *pg.Tx) error { return drain(tx.Query(ctx, sql)) })
		},
		"row in a transaction": func(sql string) func(context.Context) error {
			return in(func(ctx context.Context, tx *pg.Tx) error { return tx.QueryRow(ctx, sql).Scan(new(int)) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := pg.Long(context.WithoutCancel(t.Context()))
			if err := ask(lost)(ctx); !pg.Unreachable(err) {
				t.Errorf("%v, want an error that counts as unreachable", err)
			}
			if err := ask(long)(ctx); err != nil {
				t.Errorf("one that is worked on: %v", err)
			}
		})
	}
}
