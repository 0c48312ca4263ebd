package cli

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pgtest"
)

// tests runs the tests of this package and ends the servers that they started.
type tests struct{ m *testing.M }

func (t tests) Run() int { return pgtest.Run(t.m) }

func TestMain(m *testing.M) {
	testscript.Main(tests{m}, map[string]func(){"kappactl": func() { os.Exit(Main(os.Args[1:])) }})
}

// TestScripts runs each script of testdata/script against the real program. They see
//
//	$DSN           a fresh database with the control schema
//	$EMPTY_DSN     one without it
//	$WRONG_DSN     a wrong password ("sesame"), in the connection string
//	$POOR_DSN      a role that may connect and nothing else
//	$BROKERS       an embedded broker with a topic pageviews
//	$DEAD          a port on which nothing listens
//	$SILENT        a port that accepts and never answers
//	$EXAMPLES      the folder examples
//
// and the commands alive (an agent's heartbeat, so that commands go on) and within SECONDS COMMAND….
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			t, ok := env.T().(testing.TB)
			if !ok {
				return fmt.Errorf("no testing.TB in %T", env.T())
			}
			return scriptEnv(t, env)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"alive": alive, "exits": exits},
	})
}

func scriptEnv(t testing.TB, env *testscript.Env) error {
	examples, err := filepath.Abs(filepath.Join("..", "..", "examples"))
	if err != nil {
		return err
	}
	dsn, brokers := pgtest.Database(t), kafkatest.Fake(t)
	kafkatest.CreateTopic(t, brokers, "pageviews", 4, nil)
	role := "poor_" + strings.TrimPrefix(mustParse(t, dsn).Path, "/")
	execute(t, dsn, fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD 'x'", role))
	t.Cleanup(func() { execute(t, pgtest.On(dsn, "postgres"), "DROP ROLE "+role) })
	for name, value := range map[string]string{
		"DSN":       dsn,
		"EMPTY_DSN": pgtest.Empty(t),
		"WRONG_DSN": pgtest.As(dsn, role, "sesame"),
		"POOR_DSN":  pgtest.As(dsn, role, "x"),
		"BROKERS":   strings.Join(brokers, ","),
		"DEAD":      closedPort(t),
		"SILENT":    silentPort(t),
		"EXAMPLES":  examples,
		"HOME":      env.WorkDir,
		"NO_COLOR":  "",
	} {
		env.Setenv(name, value)
	}
	return nil
}

func mustParse(t testing.TB, dsn string) *url.URL {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func execute(t testing.TB, dsn, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if t.Context().Err() != nil { // in a cleanup
		conn, err = pgx.Connect(contextOfCleanup(), dsn)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(contextOfCleanup())
	if _, err := conn.Exec(contextOfCleanup(), sql); err != nil {
		t.Error(err)
	}
}

func closedPort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}

// silentPort accepts connections into its backlog and never reads.
func silentPort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}
