package pgtest

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/kappactl/kappactl/internal/devstack/postgres"
)

// Replica starts a streaming replica of the server, under the given application name, and returns the URL of its
// database. It ends with the test, before the server does.
func (o *Own) Replica(t testing.TB, name string) string {
	t.Helper()
	folder, err := postgres.TempFolder()
	if err != nil {
		t.Fatal(err)
	}
	c := o.config
	c.Data, c.Port = folder, 0
	var server *postgres.Server
	t.Cleanup(func() {
		if server != nil {
			err = server.Stop()
		}
		if err := errors.Join(err, os.RemoveAll(folder)); err != nil {
			t.Error(err)
		}
	})
	if err := o.backup(t, folder, name); err != nil {
		t.Fatalf("copy the server: %v", err)
	}
	if server, err = postgres.Start(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return server.DSN("own")
}

// backup copies the running server into the folder of another cluster, with the same password and the same owner.
func (o *Own) backup(t testing.TB, folder, name string) error {
	pass, err := os.ReadFile(o.server.PassFile())
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, filepath.Base(o.server.PassFile())), pass, 0o600); err != nil {
		return err
	}
	source, err := url.Parse(o.DSN)
	if err != nil {
		return err
	}
	const data = "pgdata"
	fields := strings.Split(strings.TrimSpace(string(pass)), ":")
	cmd := exec.CommandContext(t.Context(), filepath.Join(o.config.Bin.Dir, "pg_basebackup"), "--pgdata",
		filepath.Join(folder, data), "--write-recovery-conf",
		"--checkpoint=fast", "--no-sync", "--host", source.Hostname(), "--port", strconv.Itoa(o.server.Port()), "--username",
		source.User.Username())
	cmd.Env = append(os.Environ(), "PGPASSWORD="+fields[len(fields)-1], "PGAPPNAME="+name)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	owner, err := os.Stat(filepath.Join(o.config.Data, data))
	if err != nil {
		return err
	}
	as, ok := owner.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	return filepath.WalkDir(filepath.Join(folder, data), func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, int(as.Uid), int(as.Gid)))
	})
}
