package devstack

import (
	"bufio"
	"errors"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/config"
	"github.com/kappactl/kappactl/internal/devstack/postgres"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
)

// folder is one that the server's account can reach.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := postgres.TempFolder()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func startStack(t *testing.T, c Config) *Stack {
	t.Helper()
	c.Log = func(line string) { t.Log(line) }
	s, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closeStack(t *testing.T, s *Stack) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func scan[T any](t *testing.T, dsn, sql string) T {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var v T
	if err := conn.QueryRow(t.Context(), sql).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func run(t *testing.T, dsn, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func TestRestartFindsTopicsTablesAndPortsAgain(t *testing.T) {
	dir := folder(t)
	s := startStack(t, Config{Data: dir})
	kafkatest.CreateTopic(t, s.Brokers, "orders", 2, nil)
	kafkatest.Produce(t, s.Brokers, "orders", 1, "a", "b", "c")
	run(t, s.DSN, "CREATE TABLE kept AS SELECT 7 AS n")
	before, text := *s, readFile(t, s.ConfigPath)+"# a slow disk\nagent:\n  lease: 20s\n"
	closeStack(t, s)
	if err := os.WriteFile(s.ConfigPath, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	s = startStack(t, Config{Data: dir})
	defer closeStack(t, s)
	if end, _ := kafkatest.Ends(t, s.Brokers, "orders", 1); end != 3 {
		t.Errorf("end of orders/1 = %d, want 3", end)
	}
	if n := scan[int](t, s.DSN, "SELECT n FROM kept"); n != 7 {
		t.Errorf("kept.n = %d", n)
	}
	if s.Brokers[0] != before.Brokers[0] || s.DSN != before.DSN || s.HTTP != before.HTTP {
		t.Errorf("addresses changed: %v %s %s, were %v %s %s", s.Brokers, s.DSN, s.HTTP, before.Brokers, before.DSN, before.HTTP)
	}
	if again := readFile(t, s.ConfigPath); again != text {
		t.Errorf("settings changed:\n%s\nwere:\n%s", again, text)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestStackHasTheControlSchema(t *testing.T) {
	s := startStack(t, Config{Data: folder(t)})
	defer closeStack(t, s)
	pool, err := pg.Open(t.Context(), pg.Config{DSN: s.DSN})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := pg.CheckSchema(t.Context(), pool); err != nil {
		t.Error(err)
	}
}

func TestSecondStartOnAFolderSaysWhoHoldsIt(t *testing.T) {
	dir := folder(t)
	held, err := lockFolder(dir, testTime())
	if err != nil {
		t.Fatal(err)
	}
	_, err = Start(t.Context(), Config{Data: dir})
	var refusal *job.Refusal
	if !errors.As(err, &refusal) || refusal.Code != job.ExitConflict || !strings.Contains(refusal.Cause, "since 2026-01-02T03:04:05Z") {
		t.Fatalf("error: %v", err)
	}
	if err := held.release(); err != nil {
		t.Fatal(err)
	}
	again, err := lockFolder(dir, testTime())
	if err != nil {
		t.Fatalf("after release: %v", err)
	}
	if err := again.release(); err != nil {
		t.Error(err)
	}
}

func TestExistingServersTakeThePlaceOfTheEmbeddedOnes(t *testing.T) {
	first := startStack(t, Config{Data: folder(t)})
	defer closeStack(t, first)
	dir := folder(t)
	secret := strings.Replace(first.DSN, "kappactl@", "kappactl:"+passwordOf(t, first.DSN)+"@", 1)
	s := startStack(t, Config{Data: dir, Brokers: first.Brokers, DSN: secret})
	defer closeStack(t, s)
	if s.embedded != nil || s.server != nil || s.Brokers[0] != first.Brokers[0] {
		t.Errorf("embedded %v, server %v, brokers %v", s.embedded, s.server, s.Brokers)
	}
	text := readFile(t, s.ConfigPath)
	if strings.Contains(text, passwordOf(t, first.DSN)) || strings.Contains(s.DSN, passwordOf(t, first.DSN)) {
		t.Errorf("the password is in the settings or the DSN:\n%s", text)
	}
	if got := readFile(t, filepath.Join(dir, passwordFile)); strings.TrimSpace(got) != passwordOf(t, first.DSN) {
		t.Error("the password file does not hold the password")
	}
}

func passwordOf(t *testing.T, dsn string) string {
	t.Helper()
	c, err := pgx.ParseConfig(dsn)
	if err != nil || c.Password == "" {
		t.Fatalf("no password behind %s: %v", dsn, err)
	}
	return c.Password
}

func TestWrittenSettingsLoad(t *testing.T) {
	s := startStack(t, Config{Data: folder(t), HTTP: "localhost:0"})
	defer closeStack(t, s)
	loaded, err := config.Load(config.Flags{"config": s.ConfigPath}, config.Env{Dir: t.TempDir(), Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	if string(loaded.DSN) != s.DSN || loaded.Brokers[0] != s.Brokers[0] || loaded.HTTP != s.HTTP || !strings.HasPrefix(s.HTTP, "localhost:") {
		t.Errorf("loaded %+v of %+v", loaded, s)
	}
	host, port, err := net.SplitHostPort(s.HTTP)
	if err != nil || host != "localhost" || port == "0" {
		t.Errorf("http %s: %v", s.HTTP, err)
	}
}

func TestSplitPassword(t *testing.T) {
	for in, want := range map[string][2]string{
		"postgres://u:s%40c@h:5/d?sslmode=disable":    {"postgres://u@h:5/d?sslmode=disable", "s@c"},
		"postgres://u@h:5/d":                          {"postgres://u@h:5/d", ""},
		"postgres://u@h/d?password=x&sslmode=disable": {"postgres://u@h/d?sslmode=disable", "x"},
		"host=h password='a b' user=u":                {"host=h user=u", "a b"},
		"password=x host=h":                           {"host=h", "x"},
		"host=h user=u":                               {"host=h user=u", ""},
	} {
		rest, password, err := splitPassword(in)
		if err != nil || rest != want[0] || (want[1] != "" && password != want[1]) {
			t.Errorf("%s: %q, %q, %v", in, rest, password, err)
		}
	}
	if _, _, err := splitPassword("postgres://u:secret@h:notaport/d"); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("error: %v", err)
	}
}

func TestMissingBinariesAreARefusalWithACure(t *testing.T) {
	_, err := Start(t.Context(), Config{Data: folder(t), PostgresBin: "/nowhere"})
	var refusal *job.Refusal
	if !errors.As(err, &refusal) || refusal.Code != job.ExitUsage || !strings.Contains(refusal.Cause, "/nowhere") {
		t.Errorf("error: %v", err)
	}
}

func TestStackUnderAFolderOfRootsOwnKeepsItsClusterElsewhere(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("not root: the cluster's account is ours")
		return
	}
	dir := t.TempDir() // below a folder of mode 0700, as root's home
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s := startStack(t, Config{Data: dir})
	st, err := readState(dir)
	if err != nil || strings.HasPrefix(st.PostgresData, dir) || st.PostgresData == "" {
		t.Errorf("the cluster lives in %q: %v", st.PostgresData, err)
	}
	run(t, s.DSN, "CREATE TABLE kept AS SELECT 7 AS n")
	closeStack(t, s)

	s = startStack(t, Config{Data: dir})
	if n := scan[int](t, s.DSN, "SELECT n FROM kept"); n != 7 {
		t.Errorf("kept.n = %d", n)
	}
	closeStack(t, s)
	if err := Remove(dir); err != nil || exists(dir) || exists(st.PostgresData) {
		t.Errorf("something is left of %s and %s: %v", dir, st.PostgresData, err)
	}
}

// TestOrdinaryUserRunsAStack runs a test of this binary again as an account without rights.
func TestOrdinaryUserRunsAStack(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("not root: the other tests run as an ordinary user")
		return
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, err1 := strconv.Atoi(nobody.Uid)
	gid, err2 := strconv.Atoi(nobody.Gid)
	program, err3 := os.ReadFile(os.Args[0])
	dir := folder(t)
	home, copied := filepath.Join(dir, "home"), filepath.Join(dir, "devstack.test")
	err = errors.Join(err1, err2, err3, os.WriteFile(copied, program, 0o755), os.Mkdir(home, 0o700), os.Chown(home, uid, gid))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), copied, "-test.run=^TestRestartFindsTopicsTablesAndPortsAgain$", "-test.v")
	cmd.Dir, cmd.Env = home, append(os.Environ(), "HOME="+home, "TMPDIR="+home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestServerThatEndsByItselfIsNoticed(t *testing.T) {
	s := startStack(t, Config{Data: folder(t)})
	defer closeStack(t, s)
	if err := syscall.Kill(s.server.PID(), syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "ended by itself") {
		t.Errorf("error %v", err)
	}
}

// TestKilledStackComesBackWithEverything kills a process that runs a stack; PostgreSQL lives on and is adopted.
func TestKilledStackComesBackWithEverything(t *testing.T) {
	dir := folder(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), holdVariable+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the child said %q: %v", line, err)
	}
	brokers := []string{strings.TrimSpace(line)}
	kafkatest.CreateTopic(t, brokers, "orders", 1, nil)
	kafkatest.Produce(t, brokers, "orders", 0, "a", "b", "c")
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // "signal: killed"

	s := startStack(t, Config{Data: dir})
	defer closeStack(t, s)
	if !s.server.Adopted() {
		t.Error("the server that lived on was not adopted")
	}
	if s.Brokers[0] != brokers[0] {
		t.Errorf("broker on %s, was on %s", s.Brokers[0], brokers[0])
	}
	if end, stable := kafkatest.Ends(t, s.Brokers, "orders", 0); end != 3 || stable != 3 {
		t.Errorf("end %d, stable %d, want 3", end, stable)
	}
}
