package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	clusterFolder = "pgdata"
	passFile      = "pgpass"
	logFile       = "server.log"
)

// initialise creates the cluster if it is missing. initdb works in a temporary folder that is renamed at the end, so
// that an interrupted run leaves no incomplete cluster.
func (c Config) initialise(ctx context.Context, acc *account) error {
	cluster := c.cluster()
	text, err := os.ReadFile(filepath.Join(cluster, "PG_VERSION"))
	if err == nil {
		return c.sameVersion(strings.TrimSpace(string(text)))
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the cluster's version: %w", err)
	}
	fresh := cluster + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("remove an unfinished cluster: %w", err)
	}
	if err := os.Mkdir(fresh, 0o700); err != nil {
		return fmt.Errorf("create the cluster's folder: %w", err)
	}
	if err := acc.own(fresh); err != nil {
		return err
	}
	if err := c.initdb(ctx, acc, fresh); err != nil {
		return errors.Join(err, os.RemoveAll(fresh))
	}
	if err := os.Rename(fresh, cluster); err != nil {
		return fmt.Errorf("put the cluster in place: %w", err)
	}
	return nil
}

func (c Config) sameVersion(version string) error {
	if version == strconv.Itoa(c.Bin.Version) {
		return nil
	}
	return fmt.Errorf("the cluster in %s is of PostgreSQL %s, the binaries in %s are of %d: name binaries of %s with "+
		"--postgres-bin or %s, or use another folder",
		c.Data, version, c.Bin.Dir, c.Bin.Version, version, BinVariable)
}

func (c Config) initdb(ctx context.Context, acc *account, dir string) (err error) {
	secret, err := password(filepath.Join(c.Data, passFile))
	if err != nil {
		return err
	}
	given := filepath.Join(c.Data, ".initdb-password")
	if err := writeSecret(given, secret+"\n"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(given)) }()
	if err := acc.own(given); err != nil {
		return err
	}
	args := []string{
		"--encoding=UTF8", "--username=" + role, "--pwfile=" + given, "--auth=scram-sha-256", "--no-instructions",
	}
	if c.Settings["fsync"] == "off" {
		args = append(args, "--no-sync")
	}
	var last error
	// C.UTF-8 is missing on some systems; C sorts the same way.
	for _, locale := range []string{"C.UTF-8", "C"} {
		last = runInitdb(ctx, c.Bin, acc, dir, append(args, "--locale="+locale)...)
		if last == nil || ctx.Err() != nil {
			break
		}
	}
	return last
}

func runInitdb(ctx context.Context, bin Bin, acc *account, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, bin.program("initdb"), append([]string{"--pgdata=" + dir}, args...)...)
	cmd.Dir, cmd.SysProcAttr, cmd.Env = dir, acc.attributes(), environment()
	out, err := cmd.CombinedOutput()
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return &StartError{What: "initdb", Tail: tail(string(out), 3), Err: err}
	}
	return nil
}

// tail returns the last lines of a text on one line.
func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], " | ")
}
