package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// postmaster is the content of a running server's postmaster.pid.
type postmaster struct {
	pid    int
	port   int
	status string // starting, stopping, ready, standby; empty right after the start
}

func (p postmaster) ready() bool { return p.status == "ready" }

func readPostmaster(cluster string) (postmaster, error) {
	text, err := os.ReadFile(filepath.Join(cluster, "postmaster.pid"))
	if err != nil {
		return postmaster{}, err
	}
	return parsePostmaster(string(text))
}

// parsePostmaster parses the lines pid, folder, start time, port, socket folder, address, shared memory, status. A
// server that is starting has written only the first of them.
func parsePostmaster(text string) (postmaster, error) {
	lines := strings.Split(text, "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil || pid <= 0 {
		return postmaster{}, fmt.Errorf("postmaster.pid: no process id in its first line")
	}
	p := postmaster{pid: pid}
	if len(lines) > 3 {
		p.port, _ = strconv.Atoi(strings.TrimSpace(lines[3])) // 0 if unknown yet
	}
	if len(lines) > 7 {
		p.status = strings.TrimSpace(lines[7])
	}
	return p, nil
}

// adopt returns the running server of this cluster, or nil. It waits for a server that is starting or stopping.
func (c Config) adopt(ctx context.Context) (*Server, error) {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		pm, err := readPostmaster(c.cluster())
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		if err == nil && !alive(pm.pid) {
			return nil, nil // left by a crash; the new server removes it
		}
		if err == nil && !runsIn(pm.pid, c.cluster()) {
			return nil, c.dropStale()
		}
		if err == nil && pm.ready() {
			return c.take(ctx, pm)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the PostgreSQL server that uses %s: %w", c.Data, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

func (c Config) take(ctx context.Context, pm postmaster) (*Server, error) {
	if !c.Adopt {
		return nil, fmt.Errorf("start PostgreSQL in %s: %w (pid %d)", c.Data, ErrRunning, pm.pid)
	}
	s := &Server{config: c, port: pm.port, pid: pm.pid, adopted: true}
	conn, err := pgx.Connect(ctx, s.DSN("postgres"))
	if err != nil {
		return nil, fmt.Errorf("use the PostgreSQL server that runs in %s (pid %d): %w", c.Data, pm.pid, err)
	}
	return s, conn.Close(ctx)
}

// dropStale removes the postmaster file of a crashed server whose process id now belongs to another program, because
// PostgreSQL would refuse to start.
func (c Config) dropStale() error {
	if err := os.Remove(filepath.Join(c.cluster(), "postmaster.pid")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove a stale postmaster.pid: %w", err)
	}
	return nil
}

func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// runsIn reports whether the process works in the folder, as a server does in its cluster's. It is true if that is
// unknown (no /proc).
func runsIn(pid int, dir string) bool {
	cwd, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "cwd"))
	if err != nil {
		return true
	}
	resolved, err := filepath.EvalSymlinks(dir)
	return err != nil || cwd == resolved
}
