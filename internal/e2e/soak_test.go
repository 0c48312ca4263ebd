package e2e_test

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

const pageviewsJob = `job: pageviews
source:
  topics: [%s]
  format: json
  columns: {user_id: text, url: text, ts: timestamptz, duration_ms: bigint}
query: |
  SELECT url, date_trunc('hour', ts) AS hour, count(*) AS views, sum(duration_ms) AS total_ms
  FROM source
  GROUP BY url, hour
serve:
  view: public.pageviews_hourly
replay: {workers: 2}
ready: {stable_for: 0s}
`

// TestSoakReplayIsBoundedInMemory replays 10 M records of 168 bytes with two workers; the agent stays under 1 GB.
func TestSoakReplayIsBoundedInMemory(t *testing.T) {
	if !soak {
		t.Skip("10 M records: part of make soak")
	}
	const records, bound = 10_000_000, 1_000_000_000
	brokers := kafkatest.Real(t)
	w := newWorld(t, brokers)
	topic := kafkatest.Name("pageviews")
	kafkatest.Topic(t, brokers, topic, 4, nil)
	kafkatest.ProduceMany(t, brokers, records, func(i int) *kgo.Record { return pageview(topic, i) },
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()))
	a := w.serve()
	var d deployed
	w.into(&d, "deploy", w.file("pageviews.yaml", fmt.Sprintf(pageviewsJob, topic)))
	peak, err := peakMemory(a.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	var views int64
	if err := w.pool.QueryRow(t.Context(), `SELECT sum(views)::bigint FROM pageviews_hourly`).Scan(&views); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d records in %.1f s, %.0f records/s, peak %d MB", d.Records, d.Seconds, float64(d.Records)/d.Seconds, peak/1e6)
	if views != records || d.Records != records {
		t.Errorf("the view counts %d, deploy says %d; want %d", views, d.Records, records)
	}
	if peak > bound {
		t.Errorf("peak memory %d bytes, over %d", peak, bound)
	}
}

// pageview is record i of the pageviews topic, 168 bytes.
func pageview(topic string, i int) *kgo.Record {
	x := uint64(i) * 0x9E3779B97F4A7C15
	x ^= x >> 29
	hour, url := x%72, x/72%1000
	value := fmt.Appendf(nil, `{"user_id":"user-%08d","url":"/catalogue/products/item-%04d","ts":"2026-01-%02dT%02d:%02d:%02dZ","duration_ms":%04d,"agent":"Mozilla/5.0 (X11; Linux)"`,
		x/7%100_000, url, 1+hour/24, hour%24, x/11%60, x/13%60, 1000+x/17%9000)
	for len(value) < 167 {
		value = append(value, ' ')
	}
	return &kgo.Record{Topic: topic, Partition: int32(i % 4), Value: append(value, '}')}
}
