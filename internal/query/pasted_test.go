package query

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestQueriesOfOtherSystems compares what the view shows with one pass, and with DuckDB's answer to the query as it is
// written. The records are in the order of the log, which DuckDB's own order of ties then is.
func TestQueriesOfOtherSystems(t *testing.T) {
	l := newMergeRig(t)
	compiling := open(t, Config{Memory: compileMemory, plain: true})
	for _, q := range queriesOf(t, "pasted.sql") {
		c, err := compileIn(t.Context(), compiling, parseJob(t, "job.yaml", jobText(q.text)+"distinct_max: 40\n"))
		if err != nil {
			t.Errorf("%s\n%v", q.text, err)
			continue
		}
		for seed := range uint64(2) {
			r := rand.New(rand.NewPCG(5, seed))
			records := tameRecords(r)
			for i, rec := range records {
				rec["_topic"], rec["_partition"], rec["_offset"] = "pageviews", int32(0), int64(i)
				rec["_timestamp"], rec["duration_ms"], rec["doc"] = int64(i)*1_000_000, int64(r.IntN(1e6)), `{"a": 1}`
			}
			l.exec("BEGIN")
			l.tables(c.Layout)
			l.typed(c.Layout)
			for _, part := range shards(r, records) {
				l.upsert(c.Layout, l.land(c, part))
			}
			views := map[string][][]string{"the version table": l.served(c.Layout, "v"), "staging": l.served(c.Layout, "staged")}
			oracle, err := l.answered(c, c.Oracle, records)
			if err != nil {
				t.Fatalf("%s\n%v", q.text, err)
			}
			plain, err := l.answered(c, q.text, records)
			if err != nil {
				t.Fatalf("%s\n%v", q.text, err)
			}
			l.exec("ROLLBACK")
			for name, got := range views {
				if !l.alike(c, got, oracle) {
					t.Errorf("%s\n%s differs from one pass (-one pass +merged):\n%s", q.text, name, cmp.Diff(oracle, got))
				}
				if !l.alike(c, got, plain) {
					t.Errorf("%s\n%s differs from DuckDB (-DuckDB +view):\n%s", q.text, name, cmp.Diff(plain, got))
				}
			}
		}
	}
}
