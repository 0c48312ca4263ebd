// Command pages counts the records of each page: a program for a job of engine: program with commit: table. It is all
// that such a program needs, and docs/programs.md explains it.
//
//	pages [--from PAGE]     counts pages from that number on
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The errors of kappactl.advance.
const (
	fenced = "KC001" // another process has taken over: end
	held   = "KC002" // DETAIL has the offsets up to which may be committed for now
)

// offsets are the next ones to read, by topic/partition.
type offsets map[string]int64

func place(r *kgo.Record) string { return fmt.Sprintf("%s/%d", r.Topic, r.Partition) }

type program struct {
	from    int
	db      *pgx.Conn
	kafka   *kgo.Client
	ends    offsets       // of the replay; empty: there is none
	next    offsets       // that are committed
	pending []*kgo.Record // that are not
}

func main() {
	from := flag.Int("from", 0, "the first page")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	err := run(ctx, *from)
	var refused *pgconn.PgError
	switch {
	case err == nil, ctx.Err() != nil:
	case errors.As(err, &refused) && refused.Code == fenced:
		fmt.Fprintln(os.Stderr, refused.Message) // not a failure: another process goes on
	default:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // nothing is left to do
	}
}

func run(ctx context.Context, from int) error {
	p := program{from: from, next: offsets{}, ends: offsets{}}
	if err := json.Unmarshal([]byte(os.Getenv("KAPPACTL_START")), &p.next); err != nil {
		return fmt.Errorf("KAPPACTL_START: %w", err)
	}
	if end := os.Getenv("KAPPACTL_END"); end != "" {
		if err := json.Unmarshal([]byte(end), &p.ends); err != nil {
			return fmt.Errorf("KAPPACTL_END: %w", err)
		}
	}
	starts := map[string]map[int32]kgo.Offset{}
	for at, offset := range p.next {
		cut := strings.LastIndexByte(at, '/')
		n, err := strconv.ParseInt(at[cut+1:], 10, 32)
		if err != nil {
			return err
		}
		if starts[at[:cut]] == nil {
			starts[at[:cut]] = map[int32]kgo.Offset{}
		}
		starts[at[:cut]][int32(n)] = kgo.NewOffset().At(offset)
	}
	var err error
	if p.db, err = pgx.Connect(ctx, os.Getenv("KAPPACTL_DSN")); err != nil {
		return err
	}
	defer func() { _ = p.db.Close(context.WithoutCancel(ctx)) }()
	p.kafka, err = kgo.NewClient(
		kgo.SeedBrokers(strings.Split(os.Getenv("KAPPACTL_BROKERS"), ",")...),
		kgo.ConsumePartitions(starts),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), // positions pass the markers of transactions
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
	)
	if err != nil {
		return err
	}
	defer p.kafka.Close()
	return p.loop(ctx)
}

// loop polls and commits until the replay has come to its end or ctx ends.
func (p *program) loop(ctx context.Context) error {
	for !p.replayed() {
		wait, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		fetches := p.kafka.PollRecords(wait, max(1, 2000-len(p.pending)))
		cancel()
		if ctx.Err() != nil {
			return nil
		}
		for _, f := range fetches.Errors() {
			if !errors.Is(f.Err, context.DeadlineExceeded) {
				return fmt.Errorf("%s/%d: %w", f.Topic, f.Partition, f.Err)
			}
		}
		p.pending = append(p.pending, fetches.Records()...)
		if err := p.flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

// replayed reports whether everything up to KAPPACTL_END is committed.
func (p *program) replayed() bool {
	for at, end := range p.ends {
		if p.next[at] < end {
			return false
		}
	}
	return len(p.ends) > 0
}

// flush commits what is pending, up to a hold when there is one. What is behind it stays pending.
func (p *program) flush(ctx context.Context) error {
	err := p.commit(ctx, p.pending)
	var refused *pgconn.PgError
	if err == nil {
		p.pending = nil
		return nil
	}
	if !errors.As(err, &refused) || refused.Code != held {
		return err
	}
	holds := offsets{}
	if err := json.Unmarshal([]byte(refused.Detail), &holds); err != nil {
		return err
	}
	var now, later []*kgo.Record
	for _, r := range p.pending {
		if hold, is := holds[place(r)]; is && r.Offset >= hold {
			later = append(later, r)
			continue
		}
		now = append(now, r)
	}
	p.pending = later
	if err := p.commit(ctx, now); err != nil {
		p.pending = slices.Concat(now, later)
		if !errors.As(err, &refused) || refused.Code != held { // a hold that is newer: look again
			return err
		}
	}
	return nil
}

// commit writes the results of records and moves the positions over them, in one transaction.
func (p *program) commit(ctx context.Context, records []*kgo.Record) error {
	if len(records) == 0 {
		return nil
	}
	counts, upto := map[int]int{}, offsets{}
	for _, r := range records {
		upto[place(r)] = r.Offset + 1
		var click struct{ Page *int }
		if r.Attrs.IsControl() || json.Unmarshal(r.Value, &click) != nil || click.Page == nil || *click.Page < p.from {
			continue
		}
		counts[*click.Page]++
	}
	positions, err := json.Marshal(upto)
	if err != nil {
		return err
	}
	pages, clicks := make([]int, 0, len(counts)), make([]int, 0, len(counts))
	for page, n := range counts {
		pages, clicks = append(pages, page), append(clicks, n)
	}
	err = pgx.BeginFunc(ctx, p.db, func(tx pgx.Tx) error {
		// Instances write rows of the same page: they take them in one order.
		_, err := tx.Exec(ctx, `INSERT INTO `+os.Getenv("KAPPACTL_TABLE")+` AS t (page, clicks)
			SELECT * FROM unnest($1::integer[], $2::bigint[]) AS u (page, clicks) ORDER BY page
			ON CONFLICT (page) DO UPDATE SET clicks = t.clicks + excluded.clicks`, pages, clicks)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `SELECT `+os.Getenv("KAPPACTL_SCHEMA")+`.advance($1, $2, $3, $4)`,
			os.Getenv("KAPPACTL_JOB"), number("KAPPACTL_VERSION"), number("KAPPACTL_CLAIM"), string(positions))
		return err
	})
	if err == nil {
		for at, n := range upto {
			p.next[at] = n
		}
	}
	return err
}

func number(name string) int64 {
	n, err := strconv.ParseInt(os.Getenv(name), 10, 64)
	if err != nil {
		panic(name + ": " + err.Error())
	}
	return n
}
