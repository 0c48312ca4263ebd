package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	flipReaders = 50
	flipRecords = 1_000_000
	readEvery   = 10 * time.Millisecond
)

// flipped holds what readers saw while the view was promoted and rolled back.
type flipped struct {
	Flips   int     `json:"flips"`
	Reads   int     `json:"reads"`
	Errors  int     `json:"errors"`
	Median  float64 `json:"median_seconds"`
	P99     float64 `json:"p99_seconds"`
	Longest float64 `json:"longest_seconds"`
}

// flipBench promotes and rolls back while readers poll the view, and prints the longest that one of them waited.
func (b *bench) flipBench(ctx context.Context) (err error) {
	const name = "pageviews-flip"
	defer b.dropTopic(ctx, name)
	if _, err := b.write(ctx, b.pageviews(name, min(b.records, flipRecords))); err != nil {
		return err
	}
	h, err := b.host(ctx, 1)
	if err != nil {
		return err
	}
	defer h.end(&err)
	dsn := h.dsn
	first := fmt.Sprintf(viewsJob, name, b.workers)
	second := strings.Replace(first, "FROM source", "FROM source WHERE duration_ms >= 100", 1)
	for i, text := range []string{first, second} {
		path := filepath.Join(b.folder, fmt.Sprintf("flip-%d.yaml", i+1))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
		if _, _, err := b.command(ctx, dsn, "deploy", path, "--promote", "auto"); err != nil {
			return err
		}
	}
	stop, err := b.readers(ctx, dsn)
	if err != nil {
		return err
	}
	for i := range b.flips {
		args := []string{"rollback", "pageviews"}
		if i%2 == 1 {
			args = []string{"promote", "pageviews", "v2"}
		}
		if _, _, e := b.command(ctx, dsn, args...); e != nil {
			err = e
			break
		}
	}
	f := stop()
	if err != nil {
		return err
	}
	f.Flips = b.flips
	b.result.Flip = &f
	if f.Errors > 0 {
		return fmt.Errorf("%d reads failed", f.Errors)
	}
	b.say("%d flips under %d readers: %d reads, %d errors, median %s, p99 %s, longest %s", b.flips, flipReaders, f.Reads,
		f.Errors,
		seconds(f.Median), seconds(f.P99), seconds(f.Longest))
	return nil
}

// readers poll one row of the view, each on its own connection, until stop.
func (b *bench) readers(ctx context.Context, dsn string) (stop func() flipped, err error) {
	reading, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	waits, failures := make([][]float64, flipReaders), make([]int, flipReaders)
	for i := range flipReaders {
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			cancel()
			group.Wait()
			return nil, err
		}
		group.Go(func() {
			defer conn.Close(context.WithoutCancel(ctx))
			tick := time.NewTicker(readEvery)
			defer tick.Stop()
			for {
				select {
				case <-reading.Done():
					return
				case <-tick.C:
				}
				began := time.Now()
				var views int64
				// Not under reading: a read that is cut off at the end would count as an error.
				err := conn.QueryRow(ctx,
					"SELECT views FROM public.rolled_up WHERE url = '/products/page-001' LIMIT 1").Scan(&views)
				waits[i] = append(waits[i], time.Since(began).Seconds())
				if err != nil || views == 0 {
					failures[i]++
				}
			}
		})
	}
	return func() flipped {
		cancel()
		group.Wait()
		var f flipped
		all := slices.Concat(waits...)
		for _, n := range failures {
			f.Errors += n
		}
		slices.Sort(all)
		if f.Reads = len(all); f.Reads > 0 {
			f.Median, f.P99, f.Longest = all[len(all)/2], all[len(all)*99/100], all[len(all)-1]
		}
		return f
	}, nil
}
