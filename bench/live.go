package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// rolledUpJob rolls up the records of a topic as they arrive; its arguments are job, topic and view. newest is the
// highest seq that the view has read.
const rolledUpJob = `job: %s
source:
  topics: [%s]
  format: json
  columns: {url: text, ts: timestamptz, duration_ms: bigint, seq: bigint}
query: |
  SELECT url, date_trunc('hour', ts) AS hour, count(*) AS views, sum(duration_ms) AS total, max(seq) AS newest
  FROM source
  GROUP BY url, hour
serve: {view: public.%s}
ready: {stable_for: 0s}
promote: auto
`

// following holds the measurements of a version that follows live records.
type following struct {
	Partitions int     `json:"partitions"`
	Agents     int     `json:"agents"`
	Rate       float64 `json:"records_per_second"` // as produced
	Seconds    float64 `json:"seconds"`
	Samples    int     `json:"samples"` // of the time from produce to visible, in seconds:
	P50        float64 `json:"p50_seconds"`
	P95        float64 `json:"p95_seconds"`
	P99        float64 `json:"p99_seconds"`
	Longest    float64 `json:"longest_seconds"`
	Commits    float64 `json:"commits_per_second"` // over all agents
	Commit     float64 `json:"commit_seconds"`     // a commit's transaction, on average
	CPU        float64 `json:"cores"`              // that the agents used
	Peak       int64   `json:"peak_bytes"`         // of the largest agent
}

// liveBench follows live records with one agent over 1, 4 and 16 partitions, then with two agents.
func (b *bench) liveBench(ctx context.Context) error {
	for _, f := range []following{
		{Partitions: 1, Agents: 1},
		{Partitions: 4, Agents: 1},
		{Partitions: 16, Agents: 1},
		{Partitions: 16, Agents: 2},
	} {
		if err := b.follow(ctx, &f); err != nil {
			return fmt.Errorf("%d agents, %d partitions: %w", f.Agents, f.Partitions, err)
		}
		b.result.Live = append(b.result.Live, f)
		b.say("live, %d agents, %d partitions: %.0f records/s, p50 %.0f ms, p99 %.0f ms, longest %.0f ms, %.1f commits/s "+
			"of %.0f ms, %.2f cores",
			f.Agents, f.Partitions, f.Rate, f.P50*1000, f.P99*1000, f.Longest*1000, f.Commits, f.Commit*1000, f.CPU)
	}
	return nil
}

// follow deploys the job on an empty topic, produces into it, and measures when records become visible.
func (b *bench) follow(ctx context.Context, f *following) (err error) {
	name := fmt.Sprintf("live-%d-%d", f.Agents, f.Partitions)
	if err := b.makeTopic(ctx, name, f.Partitions, 0); err != nil {
		return err
	}
	defer b.dropTopic(ctx, name)
	h, err := b.host(ctx, f.Agents)
	if err != nil {
		return err
	}
	defer h.end(&err)
	dsn := h.dsn
	path := filepath.Join(b.folder, name+".yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, rolledUpJob, "live", name, "rolled_up"), 0o600); err != nil {
		return err
	}
	if _, _, err := b.command(ctx, dsn, "deploy", path); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := until(ctx, conn, `SELECT count(DISTINCT owner) = $1 AND count(*) = count(owner) FROM kappactl.position`,
		f.Agents); err != nil {
		return fmt.Errorf("every agent follows partitions: %w", err)
	}
	return b.measureLive(ctx, f, name, conn, h.agents)
}

func (b *bench) measureLive(ctx context.Context, f *following, name string, conn *pgx.Conn, agents []*agent) error {
	before, err := lookAt(ctx, agents)
	if err != nil {
		return err
	}
	profile := b.profiled(ctx, agents[0], name, int(b.live.Seconds()))
	began := time.Now()
	p, err := b.newProducer(name, f.Partitions)
	if err != nil {
		return err
	}
	defer p.client.Close()
	producing, stop := context.WithTimeout(ctx, b.live)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- p.run(producing, rand.New(rand.NewPCG(seed, seed))) }() //nolint:gosec // made-up data
	waits, err := p.watch(ctx, conn, producing.Done())
	stop()
	if err := errors.Join(err, <-done); err != nil {
		return err
	}
	f.Seconds = time.Since(began).Seconds()
	f.Rate = float64(p.records) / b.live.Seconds()
	after, err := lookAt(ctx, agents)
	if err != nil {
		return err
	}
	profile()
	if err := until(ctx, conn,
		`SELECT coalesce(sum(views), 0) = $1 AND coalesce(sum(total), 0) = $2 FROM public.rolled_up`, p.records,
		p.sum); err != nil {
		return fmt.Errorf("the view shows the %d records: %w", p.records, err)
	}
	if f.Samples = len(waits); f.Samples < 100 {
		return fmt.Errorf("only %d samples", f.Samples)
	}
	slices.Sort(waits)
	at := func(share float64) float64 { return waits[int(share*float64(len(waits)-1))] }
	f.P50, f.P95, f.P99, f.Longest = at(0.5), at(0.95), at(0.99), at(1)
	f.CPU, f.Peak = (after.cpu-before.cpu)/f.Seconds, after.peak
	f.Commits = (after.commits - before.commits) / f.Seconds
	f.Commit = (after.seconds - before.seconds) / max(after.commits-before.commits, 1)
	return nil
}

// until waits for a query to be true.
func until(ctx context.Context, conn *pgx.Conn, sql string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		var yes bool
		if err := conn.QueryRow(ctx, sql, args...).Scan(&yes); err != nil || yes {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// counters are the agents' own, summed up; peak is of the largest.
type counters struct {
	cpu, commits, seconds float64
	peak                  int64
}

func lookAt(ctx context.Context, agents []*agent) (counters, error) {
	var c counters
	for _, a := range agents {
		cpu, peak, err := usage(a.cmd.Process.Pid)
		if err != nil {
			return c, err
		}
		c.cpu, c.peak = c.cpu+cpu, max(c.peak, peak)
		figures, err := scrape(ctx, "http://"+a.http+"/metrics")
		if err != nil {
			return c, err
		}
		c.commits += figures["kappactl_agent_commits_total"]
		c.seconds += figures["kappactl_commit_seconds_sum"]
	}
	return c, nil
}

// scrape reads the figures of a metrics page; those with labels are added up.
func scrape(ctx context.Context, url string) (map[string]float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	out := map[string]float64{}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		name, value, found := strings.Cut(lines.Text(), " ")
		if strings.HasPrefix(name, "#") || !found {
			continue
		}
		name, _, _ = strings.Cut(name, "{")
		if v, err := strconv.ParseFloat(value[strings.LastIndex(value, " ")+1:], 64); err == nil {
			out[name] += v
		}
	}
	return out, lines.Err()
}
