package e2e_test

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

// TestCSVAndRawRecordsBecomeAView runs a job of each format to its live view, counts the dead letters and verifies it.
func TestCSVAndRawRecordsBecomeAView(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Fake(t)
	for format, job := range map[string]struct{ columns, query, value string }{
		"csv": {
			"{page: integer, ms: bigint, note: text}", "SELECT page, count(*) AS clicks, sum(ms) AS total_ms, count(note) AS notes FROM source GROUP BY page",
			"%d,\"%d\",\r\n",
		},
		"raw": {
			"{line: text}", "SELECT CAST(split_part(line, ' ', 1) AS INTEGER) AS page, count(*) AS clicks, sum(CAST(split_part(line, ' ', 2) AS BIGINT)) AS total_ms, count(nullif(line, line)) AS notes FROM source GROUP BY page",
			"%d %d",
		},
	} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, brokers)
			topic := kafkatest.Name(format)
			kafkatest.Topic(t, brokers, topic, 2, nil)
			produce := func(n int) {
				kafkatest.ProduceMany(t, brokers, n, func(i int) *kgo.Record {
					return &kgo.Record{Topic: topic, Partition: int32(i % 2), Value: fmt.Appendf(nil, job.value, i%10, i)}
				}, kgo.RecordPartitioner(kgo.ManualPartitioner()))
			}
			produce(5000)
			kafkatest.Produce(t, brokers, topic, 0, "\xff")
			w.serve()
			w.ok("deploy", w.file("job.yaml", fmt.Sprintf(`
job: lines
source: {topics: [%s], format: %s, columns: %s, on_error: {dead_letter: {max: 10%%}}}
query: %s
serve: {view: public.lines}
ready: {max_lag_time: 5s, stable_for: 0s}
`, topic, format, job.columns, job.query)))
			produce(100)
			total := func() (clicks, ms, notes int64) {
				if err := w.pool.QueryRow(t.Context(), `SELECT sum(clicks)::bigint, sum(total_ms)::bigint, sum(notes)::bigint FROM lines`).Scan(&clicks, &ms, &notes); err != nil {
					t.Fatal(err)
				}
				return clicks, ms, notes
			}
			kafkatest.Until(t, "the view counts every record", func() bool { n, _, _ := total(); return n == 5100 })
			if _, ms, notes := total(); ms != 5000*4999/2+100*99/2 || notes != 0 {
				t.Errorf("total_ms %d, notes %d", ms, notes)
			}
			var letters int
			if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM kappactl.dead_letter WHERE reason = 'invalid_utf8'`).Scan(&letters); err != nil || letters != 1 {
				t.Errorf("%d dead letters, %v", letters, err)
			}
			w.equal("lines")
		})
	}
}
