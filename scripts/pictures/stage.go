package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

const (
	history = 800_000 // records that wait in the topic
	arrive  = 60_000  // records that come while pictures are taken
)

// stage loads the topic and deploys what the pictures show: pageviews with a live version, visitors with a standby one,
// and slow_pages with one that waits to be promoted.
func (s *studio) stage(ctx context.Context) error {
	for name, n := range map[string]int{"history.ndjson": history, "late.ndjson": arrive} {
		if err := writePageviews(filepath.Join(s.dir, name), n); err != nil {
			return err
		}
	}
	files := map[string]string{
		"pageviews.yaml":    jobFile("pageviews", "growth", "public.pageviews_hourly", "url, date_trunc('hour', ts) AS hour", "true", "0"),
		"pageviews-v2.yaml": jobFile("pageviews", "growth", "public.pageviews_hourly", "url, date_trunc('hour', ts) AS hour", "duration_ms >= 1000", "4MB/s"),
		"visitors.yaml":     jobFile("visitors", "growth", "public.visitors_daily", "user_id, CAST(ts AS date) AS day", "true", "0"),
		"visitors-v2.yaml":  jobFile("visitors", "growth", "public.visitors_daily", "user_id, CAST(ts AS date) AS day", "duration_ms >= 500", "0"),
		"visits.yaml": "mode: lambda\narchive: {location: \"file://" + filepath.Join(s.dir, "archive") + "\", roll: {every: 1s}}\n" +
			"batch: {schedule: \"0 2 * * *\"}\n" + jobFile("visits", "growth", "public.visits_daily", "url, CAST(ts AS date) AS day", "true", "0"),
		"slow_pages.yaml": jobFile("slow_pages", "platform", "public.slow_pages", "url", "duration_ms > 20000", "0"),
		"slow-v2.yaml":    jobFile("slow_pages", "platform", "public.slow_pages", "url", "duration_ms > 15000", "0"),
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	for _, args := range [][]string{
		{"dev", "load", "history.ndjson", "--topic", "pageviews", "--partitions", "6"},
		{"deploy", "slow_pages.yaml"},
		{"deploy", "slow-v2.yaml"},
		{"deploy", "visitors.yaml"},
		{"deploy", "visitors-v2.yaml", "--promote", "auto"},
		{"deploy", "visits.yaml"},
		{"batch", "run", "visits", "--wait"},
		{"batch", "run", "visits", "--wait"},
		{"deploy", "pageviews.yaml"},
	} {
		if err := s.run(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

func writePageviews(path string, n int) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write sample data: %w", err)
	}
	defer func() {
		if closed := f.Close(); err == nil && closed != nil {
			err = fmt.Errorf("write sample data: %w", closed)
		}
	}()
	random := rand.New(rand.NewPCG(1, uint64(n))) //nolint:gosec // sample data
	urls := []string{"/", "/blog/kappa", "/docs", "/docs/queries", "/login", "/pricing"}
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w := bufio.NewWriter(f)
	for range n {
		at := begin.Add(time.Duration(random.Int64N(int64(90 * 24 * time.Hour)))).Truncate(time.Millisecond)
		_, err := fmt.Fprintf(w, `{"user_id":"u%04d","url":%q,"ts":%q,"duration_ms":%d}`+"\n",
			random.IntN(800), urls[random.IntN(len(urls))], at.Format(time.RFC3339Nano), random.IntN(30_000))
		if err != nil {
			return fmt.Errorf("write sample data: %w", err)
		}
	}
	return w.Flush()
}

func jobFile(name, team, view, keys, where, rate string) string {
	return fmt.Sprintf(`job: %s
team: %s
source:
  topics: [pageviews]
  columns: {user_id: text, url: text, ts: timestamptz, duration_ms: bigint}
query: |
  SELECT %s, count(*) AS views, sum(duration_ms) AS total_ms
  FROM source
  WHERE %s
  GROUP BY ALL
serve:
  view: %s
checks:
  - {name: not_empty, sql: "SELECT count(*) > 0 FROM candidate"}
  - {name: nothing_is_negative, sql: "SELECT bool_and(views > 0) FROM candidate"}
replay: {max_rate: %s}
ready: {max_lag_time: 2s, stable_for: 1s}
`, name, team, keys, where, view, rate)
}
