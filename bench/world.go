package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/devstack/postgres"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
)

// bench is one run with its servers.
type bench struct {
	options
	out, progress io.Writer

	folder  string
	self    string // this program, to run parts of itself as processes
	brokers []string
	server  *postgres.Server
	ends    []func()
	made    int // databases
	views   topic
	flights topic
	result  result
}

// say prints a line of progress.
func (b *bench) say(format string, args ...any) {
	_, _ = fmt.Fprintf(b.progress, time.Now().Format("15:04:05")+" "+format+"\n", args...)
}

func (b *bench) wants(part string) bool { return slices.Contains(b.what, part) }

// open starts the servers and writes the topics.
func (b *bench) open(ctx context.Context) (err error) {
	if b.workers == 0 {
		b.workers = runtime.NumCPU()
	}
	b.result = result{
		Began: time.Now().UTC(), CPUs: runtime.NumCPU(), Workers: b.workers, Partitions: b.partitions, Codec: b.codec,
		Commit: commit(ctx),
	}
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	if b.folder, err = os.MkdirTemp("", "kappactl-bench-"); err != nil {
		return err
	}
	b.ends = append(b.ends, func() { _ = os.RemoveAll(b.folder) })
	if err := b.build(ctx); err != nil {
		return err
	}
	brokers, stop, _, err := kafkatest.Launch()
	if err != nil {
		return fmt.Errorf("start a broker: %w", err)
	}
	b.brokers, b.ends = brokers, append(b.ends, stop)
	if err := b.startPostgres(ctx); err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	return nil
}

// commit is the commit of the tree, or empty.
func commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

func (b *bench) deleteTopic(ctx context.Context, name string) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...))
	if err != nil {
		return err
	}
	defer cl.Close()
	_, err = kadm.NewClient(cl).DeleteTopic(ctx, name)
	return err
}

// close ends what open started, the last thing first.
func (b *bench) close() {
	for _, end := range slices.Backward(b.ends) {
		end()
	}
}

func (b *bench) build(ctx context.Context) error {
	if b.binary != "" {
		path, err := filepath.Abs(b.binary)
		b.binary = path
		return err
	}
	b.binary = filepath.Join(b.folder, "kappactl")
	b.say("building kappactl")
	cmd := exec.CommandContext(ctx, "go", "build", "-tags", "duckdb_arrow", "-o", b.binary, "./cmd/kappactl")
	cmd.Stderr = b.progress
	return cmd.Run()
}

// startPostgres starts a server with its usual durability: a replay's commits wait for the disk as they do in
// production.
func (b *bench) startPostgres(ctx context.Context) error {
	bin, err := postgres.Find(ctx, "")
	if err != nil {
		return err
	}
	data, err := postgres.TempFolder()
	if err != nil {
		return err
	}
	b.ends = append(b.ends, func() { _ = os.RemoveAll(data) })
	b.server, err = postgres.Start(ctx, postgres.Config{
		Bin: bin, Data: data, DieWithParent: true,
		Settings: map[string]string{"max_connections": "200", "shared_buffers": "256MB"},
	})
	if err != nil {
		return err
	}
	b.ends = append(b.ends, func() {
		if err := b.server.Stop(); err != nil {
			b.say("PostgreSQL: %v", err)
		}
	})
	return nil
}

// database makes a database with the control schema; drop takes it away.
func (b *bench) database(ctx context.Context) (dsn string, drop func(), err error) {
	b.made++
	name := fmt.Sprintf("bench_%d", b.made)
	if err := b.maintain(ctx, "CREATE DATABASE "+name); err != nil {
		return "", nil, err
	}
	drop = func() {
		if err := b.maintain(context.WithoutCancel(ctx), "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			b.say("drop %s: %v", name, err)
		}
	}
	dsn = b.server.DSN(name)
	pool, err := pg.Open(ctx, pg.Config{DSN: dsn})
	if err == nil {
		err = pg.Migrate(ctx, pool, "")
		pool.Close()
	}
	if err != nil {
		drop()
		return "", nil, err
	}
	return dsn, drop, nil
}

func (b *bench) maintain(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, b.server.DSN("postgres"))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(ctx))
}

// env is the environment of the binary under test: nothing of the caller's KAPPACTL_ or PG settings.
func (b *bench) env(dsn string) []string {
	var env []string
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "KAPPACTL_") && !strings.HasPrefix(e, "PG") {
			env = append(env, e)
		}
	}
	return append(env, "KAPPACTL_BROKERS="+strings.Join(b.brokers, ","), "KAPPACTL_DSN="+dsn, "HOME="+b.folder)
}
