package pgtest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// start makes a cluster in a temporary folder and starts it; stop ends it and removes the folder.
func start(ctx context.Context) (dsn string, stop func(), err error) {
	dir, err := os.MkdirTemp("", "kappactl-pgtest-")
	if err != nil {
		return "", nil, err
	}
	cred := &syscall.Credential{}
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
	if os.Getuid() == 0 {
		u, err := user.Lookup("postgres")
		if err != nil {
			return "", nil, err
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		cred.Uid, cred.Gid = uint32(uid), uint32(gid)
		attr.Credential = cred
		if err := os.Chown(dir, uid, gid); err != nil {
			return "", nil, err
		}
	}
	bins, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	bin := bins[len(bins)-1]
	data := filepath.Join(dir, "data")
	initdb := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N")
	initdb.SysProcAttr, initdb.Dir = attr, "/"
	if out, err := initdb.CombinedOutput(); err != nil {
		return "", nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	cmd := exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-p", strconv.Itoa(port), "-k", "", "-h", "127.0.0.1",
		"-c", "fsync=off", "-c", "full_page_writes=off", "-c", "synchronous_commit=off", "-c", "max_connections=200")
	cmd.SysProcAttr, cmd.Dir = attr, "/"
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	}
	dsn = fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port)
	for {
		conn, err := pgx.Connect(ctx, dsn)
		if err == nil {
			return dsn, stop, conn.Close(ctx)
		}
		select {
		case <-ctx.Done():
			stop()
			return "", nil, err
		case <-time.After(50 * time.Millisecond):
		}
	}
}
