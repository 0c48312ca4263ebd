package pg_test

import (
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/certtest"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

// with is a DSN, a URL, at another host name and with more parameters NAME=VALUE.
func with(t *testing.T, dsn, host string, params ...string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = host + ":" + u.Port()
	q := u.Query()
	for _, p := range params {
		name, value, _ := strings.Cut(p, "=")
		q.Set(name, value)
	}
	u.RawQuery = q.Encode()
	return u.String()
}

func TestTLSToPostgreSQL(t *testing.T) {
	t.Parallel()
	files := certtest.Make(t, "client", "localhost")
	dsn := pgtest.WithTLS(t, files)
	plain := pgtest.Database(t)
	parsed, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	password := parsed.Password
	ca, other := "sslrootcert="+files.CA, "sslrootcert="+files.OtherCA
	// A reload of the server's settings is not at once.
	for range 100 {
		if conn, err := pgx.Connect(t.Context(), with(t, dsn, "localhost", "sslmode=require")); err == nil {
			if err := conn.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	for name, dsn := range map[string]string{
		"verify-full":                   with(t, dsn, "localhost", "sslmode=verify-full", ca),
		"verify-ca at another name":     with(t, dsn, "127.0.0.1", "sslmode=verify-ca", ca),
		"require":                       with(t, dsn, "127.0.0.1", "sslmode=require"),
		"the default, which prefers it": with(t, dsn, "127.0.0.1", "sslmode=prefer"),
	} {
		t.Run(name, func(t *testing.T) {
			pool, err := pg.Open(t.Context(), pg.Config{DSN: dsn})
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			var encrypted bool
			if err := pool.QueryRow(t.Context(), `SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()`).Scan(&encrypted); err != nil || !encrypted {
				t.Errorf("encrypted: %v, %v", encrypted, err)
			}
		})
	}
	for name, c := range map[string]struct{ dsn, want string }{
		"another authority":  {with(t, dsn, "localhost", "sslmode=verify-full", other), "the server's certificate is not trusted"},
		"another name":       {with(t, dsn, "127.0.0.1", "sslmode=verify-full", ca), "the server's certificate is not for this address"},
		"no TLS wanted":      {with(t, dsn, "localhost", "sslmode=disable"), "refuses connections without TLS"},
		"a server without":   {with(t, plain, "127.0.0.1", "sslmode=require"), "the server does not support TLS"},
		"no such authority":  {with(t, dsn, "localhost", "sslmode=verify-full", "sslrootcert="+filepath.Join(t.TempDir(), "ca.pem")), "ca.pem: no such file"},
		"an unknown sslmode": {with(t, dsn, "localhost", "sslmode=sometimes"), "cannot be parsed"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := pg.Open(t.Context(), pg.Config{DSN: c.dsn})
			var connect *pg.ConnectError
			if !errors.As(err, &connect) || !strings.Contains(err.Error(), c.want) || strings.ContainsAny(err.Error(), "\n") || strings.Contains(err.Error(), password) {
				t.Errorf("got %v, want one line with %q", err, c.want)
			}
		})
	}
}
