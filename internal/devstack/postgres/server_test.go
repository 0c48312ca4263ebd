package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func testConfig(t *testing.T) Config {
	t.Helper()
	bin, err := Find(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := TempFolder()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return Config{Bin: bin, Data: dir, Settings: map[string]string{"fsync": "off"}, DieWithParent: true}
}

func start(t *testing.T, c Config) *Server {
	t.Helper()
	s, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	return s
}

func stop(t *testing.T, s *Server) {
	t.Helper()
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if alive := s.running(); alive {
		t.Fatalf("pid %d runs after Stop", s.PID())
	}
}

func query[T any](t *testing.T, s *Server, database, sql string) T {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.DSN(database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var v T
	if err := conn.QueryRow(t.Context(), sql).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func execute(t *testing.T, s *Server, database, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.DSN(database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func TestRestartKeepsDataAndPort(t *testing.T) {
	c := testConfig(t)
	s := start(t, c)
	if err := s.EnsureDatabase(t.Context(), "kappactl"); err != nil {
		t.Fatal(err)
	}
	execute(t, s, "kappactl", "CREATE TABLE t AS SELECT 42 AS n")
	stop(t, s)
	c.Port = s.Port()
	again := start(t, c)
	if err := again.EnsureDatabase(t.Context(), "kappactl"); err != nil {
		t.Fatal(err)
	}
	if got := query[int](t, again, "kappactl", "SELECT n FROM t"); got != 42 {
		t.Errorf("n = %d", got)
	}
	if again.Port() != s.Port() || again.Adopted() {
		t.Errorf("port %d, was %d; adopted %v", again.Port(), s.Port(), again.Adopted())
	}
}

func TestClusterIsUTF8InBinaryOrderAndFsyncIsASetting(t *testing.T) {
	s := start(t, testConfig(t))
	for sql, want := range map[string]string{
		"SHOW server_encoding": "UTF8", "SHOW fsync": "off", "SHOW timezone": "UTC", "SHOW listen_addresses": host,
		"SELECT CASE WHEN 'Z' < 'a' THEN 'binary' ELSE 'linguistic' END": "binary",
	} {
		if got := query[string](t, s, "postgres", sql); got != want {
			t.Errorf("%s: %q, want %q", sql, got, want)
		}
	}
}

func TestConnectionStringHoldsNoPasswordAndThePasswordIsNeeded(t *testing.T) {
	s := start(t, testConfig(t))
	secret, err := password(s.PassFile())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(s.DSN("postgres"), secret) {
		t.Errorf("the password is in %s", s.DSN("postgres"))
	}
	info, err := os.Stat(s.PassFile())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the pgpass file: %v, %v", info.Mode(), err)
	}
	bad := strings.Replace(s.DSN("postgres"), role+"@", role+":wrong@", 1)
	conn, err := pgx.Connect(t.Context(), bad)
	if err == nil {
		_ = conn.Close(t.Context())
		t.Fatal("a wrong password was accepted")
	}
}

func TestStartAdoptsTheServerThatStillRuns(t *testing.T) {
	c := testConfig(t)
	s := start(t, c)
	if _, err := Start(t.Context(), c); !errors.Is(err, ErrRunning) {
		t.Fatalf("second start: %v", err)
	}
	c.Adopt = true
	second, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if !second.Adopted() || second.PID() != s.PID() || second.Port() != s.Port() {
		t.Errorf("adopted %v pid %d port %d, want pid %d port %d", second.Adopted(), second.PID(), second.Port(), s.PID(), s.Port())
	}
	if got := query[int](t, second, "postgres", "SELECT 1"); got != 1 {
		t.Error(got)
	}
	stop(t, second)
}

func TestStartRecoversAfterKill(t *testing.T) {
	c := testConfig(t)
	s := start(t, c)
	execute(t, s, "postgres", "CREATE TABLE t AS SELECT 1 AS n")
	if err := syscall.Kill(s.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	again := start(t, c)
	if got := query[int](t, again, "postgres", "SELECT n FROM t"); got != 1 || again.Adopted() {
		t.Errorf("n = %d, adopted %v", got, again.Adopted())
	}
}

func TestServerForTestsDiesWithItsParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells a child of its parent's death")
	}
	c := testConfig(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), holdVariable+"="+c.Data)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // "signal: killed"
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for deadline := time.After(time.Minute); alive(pid) && runsIn(pid, c.cluster()); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("the server (pid %d) lives on", pid)
		}
	}
}

func TestLostPasswordFileIsSaid(t *testing.T) {
	c := testConfig(t)
	stop(t, start(t, c))
	if err := os.Remove(filepath.Join(c.Data, passFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), c); err == nil || !strings.Contains(err.Error(), "password is missing") {
		t.Errorf("error %v", err)
	}
}

func TestStalePostmasterFileOfAnotherProgramIsRemoved(t *testing.T) {
	c := testConfig(t)
	stop(t, start(t, c))
	text := strconv.Itoa(os.Getpid()) + "\n" + c.cluster() + "\n1\n5432\n\n127.0.0.1\n1 1\nready   \n"
	if err := os.WriteFile(filepath.Join(c.cluster(), "postmaster.pid"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, c)
	if s.Adopted() {
		t.Error("adopted the test binary")
	}
}

func TestTakenPortMakesTheServerUseAnother(t *testing.T) {
	l, err := net.Listen("tcp4", host+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := testConfig(t)
	c.Port = l.Addr().(*net.TCPAddr).Port
	if s := start(t, c); s.Port() == c.Port {
		t.Errorf("port %d is taken", c.Port)
	}
}

func TestWrongSettingIsSaidInTheError(t *testing.T) {
	c := testConfig(t)
	c.Settings = map[string]string{"no_such_setting": "1"}
	_, err := Start(t.Context(), c)
	var early *StartError
	if !errors.As(err, &early) || !strings.Contains(err.Error(), "no_such_setting") {
		t.Errorf("error: %v", err)
	}
}

func TestInterruptedInitdbIsDoneAgain(t *testing.T) {
	c := testConfig(t)
	half := c.cluster() + ".new"
	if err := os.MkdirAll(filepath.Join(half, "base"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := query[int](t, start(t, c), "postgres", "SELECT 1"); got != 1 {
		t.Error(got)
	}
}

func TestClusterOfAnotherVersionIsRefused(t *testing.T) {
	c := testConfig(t)
	if err := os.MkdirAll(c.cluster(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.cluster(), "PG_VERSION"), []byte("9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), c); err == nil || !strings.Contains(err.Error(), "PostgreSQL 9") {
		t.Errorf("error: %v", err)
	}
}
