package pg_test

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgerrcode"

	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

func TestConnectErrorsAreOneLineWithoutSecrets(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct{ dsn, password, want string }{
		"nothing listens":  {"postgres://u:hunter2@" + addr + "/x", "", "connection refused"},
		"no such host":     {"postgres://u:hunter2@no-such-host..invalid/x", "", "host no-such-host..invalid is unknown"},
		"no such database": {pgtest.On(dsn, "nowhere"), "", `database "nowhere" does not exist`},
		"no such role":     {pgtest.As(dsn, "nobody_here", "hunter2"), "", "nobody_here"},
		"wrong password":   {dsn, "hunter2", "refused"},
		"not a DSN":        {"postgres://u:hunter2@host:port/x", "", "cannot be parsed"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := pg.Open(t.Context(), pg.Config{DSN: c.dsn, Password: pg.Password(c.password)})
			var connect *pg.ConnectError
			if !errors.As(err, &connect) {
				t.Fatalf("got %v, want a ConnectError", err)
			}
			if text := err.Error(); !strings.Contains(text, c.want) || strings.Contains(text, "hunter2") || strings.Contains(text, "\n") {
				t.Errorf("got %q, want one line with %q and no password", text, c.want)
			}
			if !pg.Unreachable(err) {
				t.Errorf("%v does not count as unreachable", err)
			}
		})
	}
}

func TestErrorsOfStatementsAreToldFromALostServer(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	_, syntax := pool.Exec(t.Context(), `SELEC 1`)
	if pg.Unreachable(syntax) || pg.Code(syntax) != pgerrcode.SyntaxError {
		t.Errorf("syntax error: unreachable %v, code %q", pg.Unreachable(syntax), pg.Code(syntax))
	}
	_, killed := pool.Exec(t.Context(), `SELECT pg_terminate_backend(pg_backend_pid())`)
	if !pg.Unreachable(killed) {
		t.Errorf("a killed session gives %v, which does not count as unreachable", killed)
	}
	err := pool.ReadCommitted(t.Context(), func(tx *pg.Tx) error {
		if _, err := tx.Exec(t.Context(), `SET LOCAL statement_timeout = 10`); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), `SELECT pg_sleep(5)`)
		return err
	})
	if pg.Unreachable(err) || pg.Code(err) != pgerrcode.QueryCanceled {
		t.Errorf("a statement timeout: unreachable %v, %v", pg.Unreachable(err), err)
	}
}
