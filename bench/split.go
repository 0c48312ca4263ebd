package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	splitRecords  = 1_000_000
	splitWarmup   = 200
	splitReads    = 4000 // of each view, prepared and not
	splitSubjects = 100_000
	routeRate     = 1000 // requests a second
	routeFor      = 10 * time.Second
	routeClients  = 64
)

// split is what an experiment costs readers: a point read of the split view beside one of the plain view, in turns on
// one connection, and the time of an OFREP evaluation at routeRate.
type split struct {
	Rows     int64       `json:"rows"`
	Prepared readPair    `json:"prepared"`
	Simple   readPair    `json:"unprepared"`
	Routes   routeTiming `json:"routes"`
}

// readPair are the medians of both views.
type readPair struct {
	Plain float64 `json:"plain_seconds"`
	Split float64 `json:"split_seconds"`
}

// more is what a read of the split view takes more, in seconds.
func (p readPair) more() float64 { return p.Split - p.Plain }

// routeTiming is how long evaluations took from the moment at which they were to be sent.
type routeTiming struct {
	Requests int     `json:"requests"`
	Failed   int     `json:"failed"`
	Median   float64 `json:"median_seconds"`
	P99      float64 `json:"p99_seconds"`
	Longest  float64 `json:"longest_seconds"`
}

// splitBench starts an experiment between two versions of a rollup with a row for each event.
func (b *bench) splitBench(ctx context.Context) (err error) {
	const name = "events-split"
	records := min(b.records, splitRecords)
	defer b.dropTopic(ctx, name)
	if _, err := b.write(ctx, b.events(name, records, records)); err != nil {
		return err
	}
	h, err := b.host(ctx, 1)
	if err != nil {
		return err
	}
	defer h.end(&err)
	conn, err := pgx.Connect(ctx, h.dsn)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := b.startSplit(ctx, h.dsn, conn, countJob("events", name, "event", b.workers)); err != nil {
		return err
	}
	s := split{}
	if err := conn.QueryRow(ctx, `SELECT count(*) FROM public.plain`).Scan(&s.Rows); err != nil {
		return err
	}
	if s.Prepared, err = readBoth(ctx, conn, pgx.QueryExecModeCacheStatement, records); err != nil {
		return err
	}
	if s.Simple, err = readBoth(ctx, conn, pgx.QueryExecModeSimpleProtocol, records); err != nil {
		return err
	}
	if s.Routes, err = routes(ctx, h.agents[0].http); err != nil {
		return err
	}
	b.result.Split = &s
	b.say("split view of %d rows: a read takes %.3f ms more prepared, %.3f ms more unprepared; OFREP at %d/s: median %.1f ms, p99 %.1f ms, "+
		"longest %.1f ms, %d of %d failed", s.Rows, s.Prepared.more()*1000, s.Simple.more()*1000, routeRate,
		s.Routes.Median*1000,
		s.Routes.P99*1000, s.Routes.Longest*1000, s.Routes.Failed, s.Routes.Requests)
	return nil
}

// startSplit deploys two versions, keeps the plain view of the first as public.plain, and splits the readers of the
// job's view.
func (b *bench) startSplit(ctx context.Context, dsn string, conn *pgx.Conn, text string) error {
	path := filepath.Join(b.folder, "split.yaml")
	deploy := func(text string, args ...string) error {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
		_, _, err := b.command(ctx, dsn, append([]string{"deploy", path}, args...)...)
		return err
	}
	if err := deploy(text); err != nil {
		return err
	}
	second := strings.Replace(text, "FROM source", "FROM source WHERE duration_ms >= 100", 1)
	if err := deploy(strings.Replace(second, "promote: auto", "promote: manual", 1), "--until", "verified"); err != nil {
		return err
	}
	var body string
	if err := conn.QueryRow(ctx, `SELECT pg_get_viewdef('public.rolled_up'::regclass)`).Scan(&body); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "CREATE VIEW public.plain AS "+body); err != nil {
		return err
	}
	if _, _, err := b.command(ctx, dsn, "ab", "start", "events", "--weights", "v1=0.5,v2=0.5"); err != nil {
		return err
	}
	_, err := conn.Exec(ctx, `ANALYZE; SELECT set_config('kappactl.subject', 'user-4711', false)`)
	return err
}

// readBoth reads single rows of the plain and the split view in turns. A row that the subject's arm lacks is a read as
// well.
func readBoth(ctx context.Context, conn *pgx.Conn, mode pgx.QueryExecMode, keys int) (readPair, error) {
	times := map[string][]float64{}
	for i := range splitWarmup + splitReads {
		event := "event-" + fmt.Sprintf("%010d", i*7919%keys)
		for _, view := range []string{"plain", "rolled_up"} {
			began := time.Now()
			var views int64
			err := conn.QueryRow(ctx, "SELECT views FROM public."+view+" WHERE event = $1", mode, event).Scan(&views)
			if err != nil && !errors.Is(err, pgx.ErrNoRows) {
				return readPair{}, fmt.Errorf("read %s of %s: %w", event, view, err)
			}
			if i >= splitWarmup {
				times[view] = append(times[view], time.Since(began).Seconds())
			}
		}
	}
	return readPair{Plain: median(times["plain"]), Split: median(times["rolled_up"])}, nil
}

// routes evaluates subjects at a fixed rate and measures from the moment at which each was due, so that a stall counts
// for all that it delays. Most subjects are new, and are recorded.
func routes(ctx context.Context, address string) (routeTiming, error) {
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: routeClients}}
	defer client.CloseIdleConnections()
	n := int(routeFor.Seconds() * routeRate)
	due := make(chan int, n)
	took, failed := make([]float64, n), make([]bool, n)
	began := time.Now().Add(100 * time.Millisecond)
	at := func(i int) time.Time { return began.Add(time.Duration(i) * time.Second / routeRate) }
	var group sync.WaitGroup
	for range routeClients {
		group.Go(func() {
			for i := range due {
				failed[i] = evaluate(ctx, client, address, "user-"+strconv.Itoa(i*7919%splitSubjects)) != nil
				took[i] = time.Since(at(i)).Seconds()
			}
		})
	}
	var stopped error
	for i := range n {
		if stopped = pause(ctx, time.Until(at(i))); stopped != nil {
			break
		}
		due <- i
	}
	close(due)
	group.Wait()
	if stopped != nil {
		return routeTiming{}, stopped
	}
	r := routeTiming{Requests: n}
	for _, f := range failed {
		if f {
			r.Failed++
		}
	}
	slices.Sort(took)
	r.Median, r.P99, r.Longest = took[n/2], took[n*99/100], took[n-1]
	return r, nil
}

func evaluate(ctx context.Context, client *http.Client, address, subject string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/ofrep/v1/evaluate/flags/events",
		strings.NewReader(`{"context": {"targetingKey": "`+subject+`"}}`))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	if resp.StatusCode != http.StatusOK {
		return errors.Join(err, errors.New(resp.Status))
	}
	return err
}
