package cli

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"time"
)

// pageview is one event of the demo.
type pageview struct {
	user     int
	url      string
	at       time.Time
	duration int // milliseconds
}

const (
	demoSeed  = 20260101
	demoViews = 200_000
	demoLate  = 5_000 // arrive while the job is live
	// bounce is how short a view may be before the demo's second version no longer counts it.
	bounce = 1000
)

// demoURLs are in the order in which the demo prints them.
func demoURLs() []string { return []string{"/", "/blog/kappa", "/docs", "/login", "/pricing"} }

// demoEvents makes n page views over six hours; the same n and seed give the same events everywhere.
func demoEvents(seed uint64, n int) []pageview {
	random := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // sample data
	urls := demoURLs()
	start := time.Date(2026, 1, 1, 6, 0, 0, 0, time.UTC)
	events := make([]pageview, n)
	for i := range events {
		events[i] = pageview{
			user:     random.IntN(5000),
			url:      urls[min(random.IntN(len(urls)), random.IntN(len(urls)))],
			at:       start.Add(time.Duration(random.Int64N(int64(6 * time.Hour)))).Truncate(time.Millisecond),
			duration: random.IntN(30_000) * random.IntN(30_000) / 30_000,
		}
	}
	return events
}

// writeEvents writes one JSON object a line.
func writeEvents(w io.Writer, events []pageview) error {
	b := bufio.NewWriter(w)
	for _, e := range events {
		_, err := fmt.Fprintf(b, `{"user_id":"u%04d","url":%q,"ts":%q,"duration_ms":%d}`+"\n", e.user, e.url,
			e.at.Format(time.RFC3339Nano), e.duration)
		if err != nil {
			return err
		}
	}
	return b.Flush()
}

// demoTotal is what the demo's view shows for one url, summed over the hours.
type demoTotal struct {
	URL   string
	Views int64
	Total int64
}

// totals is the demo's oracle: what a view has to show that counts the events of at least shortest milliseconds.
func totals(events []pageview, shortest int) []demoTotal {
	byURL := map[string]*demoTotal{}
	var out []demoTotal
	for _, url := range demoURLs() {
		byURL[url] = &demoTotal{URL: url}
	}
	for _, e := range events {
		if e.duration >= shortest {
			byURL[e.url].Views++
			byURL[e.url].Total += int64(e.duration)
		}
	}
	for _, url := range demoURLs() {
		if byURL[url].Views > 0 {
			out = append(out, *byURL[url])
		}
	}
	return out
}

// demoBounces is the condition of the demo's second version.
func demoBounces() string { return fmt.Sprintf("\n  WHERE duration_ms >= %d", bounce) }

// demoJob is the demo's job file; where is empty in its first version.
func demoJob(where string) string {
	return `job: pageviews
source:
  topics: [pageviews]
  format: json
  columns:
    user_id: text
    url: text
    ts: timestamptz
    duration_ms: bigint
query: |
  SELECT url, date_trunc('hour', ts) AS hour,
         count(*) AS views, sum(duration_ms) AS total_ms
  FROM source` + where + `
  GROUP BY url, hour
serve:
  view: public.pageviews_hourly
checks:
  - {name: not_empty, sql: "SELECT count(*) > 0 FROM candidate"}
archive: {roll: {every: 1s}}
ready: {max_lag_time: 2s, stable_for: 1s}
`
}
