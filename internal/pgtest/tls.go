package pgtest

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/certtest"
)

// WithTLS starts a server for this test that accepts only TLS connections, with the certificate of files. It returns
// its DSN, which contains the password and no TLS settings.
func WithTLS(t testing.TB, files certtest.Files) string {
	t.Helper()
	server, err := Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, server.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	var data string
	if err := conn.QueryRow(ctx, "SHOW data_directory").Scan(&data); err != nil {
		t.Fatal(err)
	}
	give(t, data, "server.crt", files.ServerCert)
	give(t, data, "server.key", files.ServerKey)
	rules := filepath.Join(t.TempDir(), "rules")
	if err := os.WriteFile(rules, []byte("hostssl all all 127.0.0.1/32 scram-sha-256\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	give(t, data, "pg_hba.conf", rules)
	for _, sql := range []string{"ALTER SYSTEM SET ssl = on", "SELECT pg_reload_conf()"} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	c := conn.Config() // the passfile identifies the server by its address only
	return As(server.DSN, c.User, c.Password)
}

// give copies a file into the server's folder, readable only by the server's account.
func give(t testing.TB, data, name, from string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(data, name)
	if err := os.WriteFile(to, text, 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(data)
	if err != nil {
		t.Fatal(err)
	}
	owner := info.Sys().(*syscall.Stat_t)
	if err := os.Chown(to, int(owner.Uid), int(owner.Gid)); err != nil {
		t.Fatal(err)
	}
}
