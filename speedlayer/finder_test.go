package speedlayer

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/format"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
)

// TestTheSieveFindsWhatFailsAlone and nothing else, for queries that read source itself.
func TestTheSieveFindsWhatFailsAlone(t *testing.T) {
	t.Parallel()
	const number = `CAST(CASE WHEN v % 7 = 0 THEN 'none' ELSE '1' END AS BIGINT)`
	keyedByK := func(s *job.Spec) { s.Serve.Key = []string{"k"} }
	for name, c := range map[string]struct {
		sql     string
		options []rigOption
		beyond  bool // the sieve finds nothing of it
	}{
		"an aggregate":           {sql: `SELECT k, sum(` + number + `) AS n FROM source GROUP BY k`},
		"two aggregates":         {sql: `SELECT k, sum(` + number + `) AS n, max(CAST(CASE WHEN v = 5 THEN 'x' ELSE '2' END AS INTEGER)) AS m FROM source GROUP BY k`},
		"a key":                  {sql: `SELECT ` + number + ` AS c, count(*) AS n FROM source GROUP BY c`},
		"behind a filter":        {sql: `SELECT k, sum(` + number + `) AS n FROM source WHERE v < 20 AND v <> 7 GROUP BY k`},
		"guarded by the filter":  {sql: `SELECT k, sum(` + number + `) AS n FROM source WHERE v % 7 <> 0 OR v = 14 GROUP BY k`},
		"guarded by a case":      {sql: `SELECT k, sum(CASE WHEN v > 20 THEN ` + number + ` END) AS n FROM source GROUP BY k`},
		"rows":                   {sql: `SELECT k, ` + number + ` AS c FROM source`},
		"the latest row":         {sql: `SELECT k, ` + number + ` AS c FROM source WHERE v > 3`, options: []rigOption{keyedByK}},
		"a filter that fails":    {sql: `SELECT k, count(*) AS n FROM source WHERE ` + number + ` = 1 GROUP BY k`, beyond: true},
		"a filtered aggregate":   {sql: `SELECT k, sum(` + number + `) FILTER (WHERE v > 9) AS n FROM source GROUP BY k`, beyond: true},
		"a query over a query":   {sql: `SELECT k, sum(c) AS n FROM (SELECT k, ` + number + ` AS c FROM source) GROUP BY k`, beyond: true},
		"several rows of one":    {sql: `SELECT k, sum(i) AS n FROM (SELECT k, unnest([` + number + `, 1]) AS i FROM source) GROUP BY k`, beyond: true},
		"a sum over the records": {sql: `SELECT k, sum(v * 3) AS n FROM source GROUP BY k`},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, kafkatest.Fake(t), 1, c.sql, c.options...)
			w := r.worker(r.engine("a"))
			records := make([]*kgo.Record, 40)
			for i := range records {
				records[i] = &kgo.Record{Topic: r.topic, Offset: int64(1000 + i), Value: fmt.Appendf(nil, `{"k":"key-%d","v":%d}`, i%3, i)}
			}
			var alone, sieved []int64
			for _, rec := range records {
				if ofData(w.probe(t.Context(), w.session, w.decoder, []*kgo.Record{rec})) {
					alone = append(alone, rec.Offset)
				}
			}
			for rec, why := range w.finder.sift(t.Context(), records) {
				sieved = append(sieved, rec.Offset)
				if why.Reason != reasonQuery || why.Detail == "" {
					t.Errorf("%d: %+v", rec.Offset, why)
				}
			}
			slices.Sort(sieved)
			if c.beyond {
				if len(sieved) > 0 || len(alone) == 0 {
					t.Errorf("sieved %v of %v", sieved, alone)
				}
				var found []int64
				err := w.finder.within(t.Context(), records, ofData, func(rec *kgo.Record, _ format.Reject) error {
					found = append(found, rec.Offset)
					return nil
				})
				if diff := cmp.Diff(alone, found); diff != "" || err != nil {
					t.Errorf("searched for one by one: %v %s", err, diff)
				}
				return
			}
			if diff := cmp.Diff(alone, sieved); diff != "" {
				t.Error(diff)
			}
		})
	}
}
