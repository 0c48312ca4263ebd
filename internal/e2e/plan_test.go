package e2e_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

const hourlyJob = `job: pageviews
source:
  topics: [%s]
  columns: {user_id: text, url: text, ts: timestamptz, duration_ms: bigint}
query: |
  SELECT url, date_trunc('hour', ts) AS hour, count(*) AS views, sum(duration_ms) AS total_ms, avg(duration_ms) AS avg_ms
  FROM source GROUP BY url, hour
serve: {view: public.pageviews_hourly}
ready: {stable_for: 0s}
`

// planned is what plan --output json prints, as far as it is compared with what deploy then does.
type planned struct {
	Version string   `json:"version"`
	Action  string   `json:"action"`
	Live    *string  `json:"live"`
	Changes []change `json:"changes"`
	Replay  struct {
		Sampled      int64   `json:"sampled"`
		Records      float64 `json:"records"`
		Bytes        float64 `json:"bytes"`
		Rows         float64 `json:"rows"`
		DiskBytes    float64 `json:"disk_bytes"`
		StagingBytes float64 `json:"staging_bytes"`
		WALBytes     float64 `json:"wal_bytes"`
		ETASeconds   float64 `json:"eta_seconds"`
		ETAFrom      string  `json:"eta_from"`
	} `json:"replay"`
	View struct {
		ReadBy    []string `json:"read_by"`
		Additions []struct {
			Kind string `json:"kind"`
			What string `json:"what"`
		} `json:"additions"`
	} `json:"view"`
}

type change struct {
	Path string `json:"path"`
}

// TestPlanSaysWhatDeployThenDoes: records, bytes, rows and disk within 20 %, on a topic that is measured whole and on ones
// that are sampled, one on each broker. make soak samples both on both.
func TestPlanSaysWhatDeployThenDoes(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		t.Parallel()
		w := newWorld(t, brokers)
		w.serve()
		const few = 50_000
		many, flown := 250_000, 100_000
		if strings.HasSuffix(t.Name(), "/kafka") {
			many, flown = 100_000, 250_000
		}
		if soak {
			many, flown = 400_000, 300_000
		}
		small, large, flights := kafkatest.Name("small"), kafkatest.Name("large"), kafkatest.Name("flights")
		for topic, n := range map[string]int{small: few, large: many} {
			kafkatest.Topic(t, brokers, topic, 4, nil)
			kafkatest.ProduceMany(t, brokers, n, func(i int) *kgo.Record { return pageview(topic, i) })
		}
		oracle := newFlightsOracle(t, flown)
		w.ok("dev", "load", oracle.file, "--topic", flights, "--partitions", "4", "--limit", fmt.Sprint(flown))

		w.planHolds("v1.yaml", fmt.Sprintf(hourlyJob, small), few, "pageviews__v1")
		w.planHolds("large.yaml", strings.NewReplacer("job: pageviews", "job: large", "pageviews_hourly", "large_hourly").Replace(fmt.Sprintf(hourlyJob, large)), int64(many), "large__v1")
		w.planHolds("flights.yaml", fmt.Sprintf(flightsJob, flights, ""), int64(flown), "flights__v1")

		// Against what is live: what changed, what hangs on it, what was added by hand.
		w.exec("CREATE VIEW public.top AS SELECT url FROM public.pageviews_hourly")
		w.exec("CREATE INDEX by_hand ON public.pageviews__v1 (views)")
		var p planned
		w.into(&p, "plan", w.file("v2.yaml", strings.Replace(fmt.Sprintf(hourlyJob, small), "FROM source", "FROM source WHERE duration_ms > 5000", 1)))
		if p.Action != "stage" || p.Version != "v2" || p.Live == nil || *p.Live != "v1" || len(p.Changes) != 1 || p.Changes[0].Path != "query" {
			t.Errorf("%+v", p)
		}
		if len(p.View.ReadBy) != 1 || !strings.Contains(p.View.ReadBy[0], "top") || len(p.View.Additions) != 1 || !strings.Contains(p.View.Additions[0].What, "by_hand") {
			t.Errorf("%+v", p.View)
		}
		if p.Replay.ETAFrom != "earlier replay" {
			t.Errorf("the time is from %q", p.Replay.ETAFrom)
		}
		page := w.ok("plan", "v2.yaml", "-o", "markdown")
		for _, want := range []string{"<!-- kappactl plan -->\n### pageviews: stage v2", "--- pageviews v1 (live)\n+++ v2.yaml\n", "\n+  FROM source WHERE duration_ms > 5000", "| WAL |"} {
			if !strings.Contains(page, want) {
				t.Errorf("lacks %q:\n%s", want, page)
			}
		}
		w.into(&p, "plan", w.file("again.yaml", fmt.Sprintf(hourlyJob, small)))
		if p.Action != "nothing" {
			t.Errorf("%+v", p)
		}
	})
}

func (w *world) exec(sql string) {
	w.t.Helper()
	if _, err := w.pool.Exec(w.t.Context(), sql); err != nil {
		w.t.Fatalf("%v: %s", err, sql)
	}
}

// planHolds plans a first version, deploys it and compares.
func (w *world) planHolds(name, text string, records int64, table string) {
	w.t.Helper()
	file := w.file(name, text)
	var p planned
	w.into(&p, "plan", file)
	if p.Action != "stage" || p.Version != "v1" {
		w.t.Fatalf("plan %s: %+v", name, p)
	}
	var d deployed
	w.into(&d, "deploy", file)
	var bytes, rows, disk float64
	err := w.pool.QueryRow(w.t.Context(), fmt.Sprintf(`SELECT (SELECT sum(bytes) FROM kappactl.segment WHERE job = @job), (SELECT count(*) FROM %s),
		pg_total_relation_size('%s')`, table, table), pgx.NamedArgs{"job": d.Job}).Scan(&bytes, &rows, &disk)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Logf("%s: planned %+v; %d records, %.0f bytes, %.0f rows, %.0f on disk, %.1f s", name, p.Replay, d.Records, bytes, rows, disk, d.Seconds)
	const most = 200_000 // that are measured: planSample of internal/cli
	if (p.Replay.Sampled == records) != (records <= most) {
		w.t.Errorf("%s: %d of %d records were measured", name, p.Replay.Sampled, records)
	}
	if d.Records != records {
		w.t.Errorf("deploy processed %d records, want %d", d.Records, records)
	}
	for what, pair := range map[string][2]float64{
		"records": {p.Replay.Records, float64(d.Records)}, "bytes": {p.Replay.Bytes, bytes}, "rows": {p.Replay.Rows, rows}, "disk": {p.Replay.DiskBytes, disk},
	} {
		if math.Abs(pair[0]-pair[1]) > 0.2*pair[1] {
			w.t.Errorf("%s: planned %.0f %s, deploy made %.0f", name, pair[0], what, pair[1])
		}
	}
}
