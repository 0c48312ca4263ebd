package postgres

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// patience is how long an orderly shutdown may take.
const patience = 20 * time.Second

// Stop shuts the server down, adopted or not: it ends sessions and flushes data. It returns when the process has ended.
func (s *Server) Stop() error {
	if s.child != nil {
		return s.child.end(fast, patience)
	}
	return s.stopAdopted()
}

// stopAdopted polls, because only child processes can be waited for.
func (s *Server) stopAdopted() error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for _, sig := range []syscall.Signal{fast, quit} {
		if !s.running() {
			return nil
		}
		if err := syscall.Kill(s.pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stop the PostgreSQL server (pid %d): %w", s.pid, err)
		}
		for deadline := time.After(patience); s.running(); {
			select {
			case <-tick.C:
				continue
			case <-deadline:
			}
			break
		}
	}
	if s.running() {
		return fmt.Errorf("the PostgreSQL server (pid %d) does not stop", s.pid)
	}
	return nil
}

// running returns false once the process has removed its file, even while an init that reaps slowly keeps its process
// id.
func (s *Server) running() bool {
	pm, err := readPostmaster(s.config.cluster())
	return err == nil && pm.pid == s.pid && alive(s.pid)
}

// Done returns a channel that is closed when a server started by this process ends, by itself or through Stop; nil for
// an adopted one.
func (s *Server) Done() <-chan struct{} {
	if s.child == nil {
		return nil
	}
	return s.child.done
}

// EnsureDatabase creates the database if it is missing.
func (s *Server) EnsureDatabase(ctx context.Context, name string) error {
	conn, err := pgx.Connect(ctx, s.DSN("postgres"))
	if err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var there bool
	const find = `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`
	if err := conn.QueryRow(ctx, find, name).Scan(&there); err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	if there {
		return nil
	}
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()); err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	return nil
}
