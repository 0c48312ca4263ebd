package pgtest

import (
	"bytes"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Bouncer starts a PgBouncer in transaction mode with this many server connections per database in front of the server
// of dsn, and returns a DSN through it. Every client uses the user and password of dsn. If the program is missing the
// test is skipped, in CI it fails: scripts/install-pgbouncer.sh installs it.
func Bouncer(t testing.TB, dsn string, servers int) string {
	t.Helper()
	program := findBouncer()
	switch {
	case program != "":
	case os.Getenv("CI") == "true":
		t.Fatal("pgbouncer is missing: run scripts/install-pgbouncer.sh")
	default:
		t.Skip("SKIPPED, not tested behind a pooler: pgbouncer is missing, run scripts/install-pgbouncer.sh")
	}
	c, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	file := filepath.Join(t.TempDir(), "pgbouncer.ini")
	text := fmt.Sprintf(`[databases]
* = host=%s port=%d user=%s password='%s'
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = %d
max_client_conn = 500
server_round_robin = 1
server_check_delay = 0
`, c.Host, c.Port, c.User, c.Password, port, servers)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ended := startBouncer(t, program, file)
	through := parse(dsn)
	through.Host = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	through.User = url.User(c.User)
	await(t, through.Host, ended)
	return through.String()
}

// startBouncer starts the program until the test ends, and returns what is closed when it ends before.
func startBouncer(t testing.TB, program, file string) <-chan struct{} {
	t.Helper()
	args := []string{file}
	if os.Getuid() == 0 { // it refuses to run as root, and reads its file before it changes the user
		args = []string{"-u", "nobody", file}
	}
	cmd := exec.Command(program, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // said tells more
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("pgbouncer said:\n%s", &said)
		}
	})
	return ended
}

func findBouncer() string {
	for _, name := range []string{os.Getenv("KAPPACTL_PGBOUNCER"), "pgbouncer", "/usr/sbin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// await waits until the address accepts connections.
func await(t testing.TB, address string, ended <-chan struct{}) {
	t.Helper()
	end := time.After(20 * time.Second)
	for {
		if conn, err := net.DialTimeout("tcp", address, time.Second); err == nil {
			_ = conn.Close()
			return
		}
		select {
		case <-ended:
			t.Fatal("pgbouncer ended at once")
		case <-end:
			t.Fatal("pgbouncer does not accept connections")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
