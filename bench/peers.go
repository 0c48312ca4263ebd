package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"
)

// peerScript runs the peers, which need a JDK and Maven.
const peerScript = "bench/peers/peer.sh"

// toolMissing is its exit code when the machine has neither.
const toolMissing = 69

// errSkipped means that a peer cannot run on this machine.
var errSkipped = errors.New("skipped")

func installPeer(ctx context.Context, name string) error {
	out, err := exec.CommandContext(ctx, peerScript, "install", name).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == toolMissing {
		return fmt.Errorf("%w: %s", errSkipped, bytes.TrimSpace(out))
	}
	if err != nil {
		return fmt.Errorf("install %s: %w\n%s", name, err, out)
	}
	return nil
}

// peer is a running peer. Its process ends when its input does, or with this one.
func (b *bench) peer(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, peerScript, append([]string{"run", name}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = &bytes.Buffer{}
	return cmd
}

// streams runs the rollup in Kafka Streams, from the start of its process until its output topic, read committed, holds
// the whole result.
func (b *bench) streams(ctx context.Context) ([]measure, error) {
	if err := installPeer(ctx, "streams"); err != nil {
		return nil, err
	}
	b.made++
	out := fmt.Sprintf("streams-%d", b.made)
	if err := b.makeTopic(ctx, out, b.partitions, 0); err != nil {
		return nil, err
	}
	cmd := b.peer(ctx, "streams", strings.Join(b.brokers, ","), b.views.name, out, strconv.Itoa(b.workers), b.folder+"/"+
		out)
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	err = b.awaitStreams(limited, out)
	m := measure{Records: b.views.records, Bytes: b.views.bytes, Served: time.Since(began).Seconds()}
	var e error
	m.CPU, m.Peak, e = usage(cmd.Process.Pid)
	err = errors.Join(err, e, input.Close(), cmd.Wait())
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, cmd.Stderr)
	}
	return []measure{m}, nil
}

// awaitStreams reads the output until the newest value of every key adds up to the whole topic, and checks it.
func (b *bench) awaitStreams(ctx context.Context, out string) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.ConsumeTopics(out),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		return err
	}
	defer cl.Close()
	type sums struct{ count, total int64 }
	newest := map[string]sums{}
	var all sums
	for all.count < b.views.records {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("%w with %d of %d records in the output", err, all.count, b.views.records)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			old := newest[string(r.Key)]
			now := sums{int64(binary.BigEndian.Uint64(r.Value)), int64(binary.BigEndian.Uint64(r.Value[8:]))}
			newest[string(r.Key)] = now
			all.count += now.count - old.count
			all.total += now.total - old.total
		})
	}
	if all != (sums{b.views.records, b.views.sum}) || int64(len(newest)) != b.views.keys {
		return fmt.Errorf("the output has %d keys, %d records and a sum of %d: want %d, %d and %d",
			len(newest), all.count, all.total, b.views.keys, b.views.records, b.views.sum)
	}
	return nil
}

// flinkTables are where the cold and the warm run write to.
var flinkTables = []string{"flink_cold", "flink_warm"}

// flink runs the rollup in Flink SQL twice in one process, cold and warm.
func (b *bench) flink(ctx context.Context) ([]measure, error) {
	if err := installPeer(ctx, "flink"); err != nil {
		return nil, err
	}
	dsn, drop, err := b.database(ctx)
	if err != nil {
		return nil, err
	}
	defer drop()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	for _, table := range flinkTables {
		if _, err := conn.Exec(ctx,
			fmt.Sprintf("CREATE TABLE %s (url text, hour timestamp, views bigint, total bigint, PRIMARY KEY (url, hour))",
				table)); err != nil {
			return nil, err
		}
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return nil, err
	}
	config := conn.Config()
	cmd := b.peer(ctx, "flink", append([]string{
		strings.Join(b.brokers, ","), b.views.name, strconv.Itoa(b.workers),
		fmt.Sprintf("jdbc:postgresql://%s%s?sslmode=disable", u.Host, u.Path), config.User,
	}, flinkTables...)...)
	cmd.Env = append(os.Environ(), "PGPASSWORD="+config.Password)
	runs, err := b.timeRuns(cmd)
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, cmd.Stderr)
	}
	for _, table := range flinkTables {
		if err := b.checkTable(ctx, conn, table); err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// timeRuns runs cmd, which prints the seconds of each run as it ends.
func (b *bench) timeRuns(cmd *exec.Cmd) ([]measure, error) {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var runs []measure
	before := 0.0
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		m := measure{Records: b.views.records, Bytes: b.views.bytes}
		if m.Served, err = strconv.ParseFloat(lines.Text(), 64); err != nil {
			break
		}
		after := 0.0
		if after, m.Peak, err = usage(cmd.Process.Pid); err != nil {
			break
		}
		m.CPU, before = after-before, after
		if runs = append(runs, m); len(runs) == len(flinkTables) {
			break
		}
	}
	if err := errors.Join(err, lines.Err(), input.Close(), cmd.Wait()); err != nil {
		return nil, err
	}
	if len(runs) != len(flinkTables) {
		return nil, fmt.Errorf("it ended after %d runs", len(runs))
	}
	return runs, nil
}

func (b *bench) checkTable(ctx context.Context, conn *pgx.Conn, table string) error {
	var rows, records, sum int64
	err := conn.QueryRow(ctx, "SELECT count(*), coalesce(sum(views), 0)::bigint, coalesce(sum(total), 0)::bigint FROM "+
		table).Scan(&rows, &records, &sum)
	if err != nil {
		return err
	}
	if rows != b.views.keys || records != b.views.records || sum != b.views.sum {
		return fmt.Errorf("%s has %d rows with %d records and a sum of %d: want %d, %d and %d",
			table, rows, records, sum, b.views.keys, b.views.records, b.views.sum)
	}
	return nil
}
