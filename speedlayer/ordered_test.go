package speedlayer

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

// ordered is a query whose states merge by one another.
const ordered = `SELECT k, last(v) AS newest, arg_max(_offset, v) AS peak, arg_min(_offset, v) AS dip, bool_or(v > 898) AS high, stddev(v) AS spread FROM (SELECT k, v, _offset FROM source WHERE v >= 0) GROUP BY k`

// TestStatesThatMergeByOneAnotherSurviveReplayAndLive: through staging, fill and live commits.
func TestStatesThatMergeByOneAnotherSurviveReplayAndLive(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 3, ordered)
	for p := range int32(3) {
		r.produce(p, int(p)*1000, 900)
	}
	r.startReplay(200)
	r.agent("a", nil)
	r.build()
	for p := range int32(3) {
		r.produce(p, 5000+int(p)*1000, 700)
	}
	r.caughtUp()
	got := r.served()
	for i, line := range got { // the spread with six digits
		cut := strings.LastIndexByte(line, ',')
		spread, err := strconv.ParseFloat(strings.TrimSuffix(line[cut+1:], ")"), 64)
		if err != nil {
			t.Fatal(err)
		}
		got[i] = fmt.Sprintf("%s,%.6f)", line[:cut], spread)
	}
	if diff := cmp.Diff(orderedModel(t, r.committed()), got); diff != "" {
		t.Fatalf("served (+) is not the naive pass (-):\n%s", diff)
	}
}

// orderedModel is one naive pass.
func orderedModel(t *testing.T, records []*kgo.Record) []string {
	t.Helper()
	type seen struct {
		rec *kgo.Record
		v   int64
	}
	groups := map[string][]seen{}
	for _, rec := range records {
		var in struct {
			K string
			V int64
		}
		if err := json.Unmarshal(rec.Value, &in); err != nil {
			t.Fatal(err)
		}
		if in.V >= 0 {
			groups[in.K] = append(groups[in.K], seen{rec, in.V})
		}
	}
	place := func(a, b seen) int {
		if a.rec.Partition != b.rec.Partition {
			return int(a.rec.Partition) - int(b.rec.Partition)
		}
		return int(a.rec.Offset - b.rec.Offset)
	}
	byValue := func(a, b seen) int {
		if a.v != b.v {
			return int(a.v - b.v)
		}
		return place(a, b)
	}
	byTime := func(a, b seen) int {
		if d := a.rec.Timestamp.Compare(b.rec.Timestamp); d != 0 {
			return d
		}
		return place(a, b)
	}
	var out []string
	for k, group := range groups {
		var sum, squares float64
		for _, s := range group {
			sum += float64(s.v)
		}
		mean := sum / float64(len(group))
		for _, s := range group {
			squares += (float64(s.v) - mean) * (float64(s.v) - mean)
		}
		peak := slices.MaxFunc(group, byValue)
		out = append(out, fmt.Sprintf("(%s,%d,%d,%d,%s,%.6f)", k, slices.MaxFunc(group, byTime).v, peak.rec.Offset, slices.MinFunc(group, byValue).rec.Offset,
			map[bool]string{true: "t", false: "f"}[peak.v > 898], math.Sqrt(squares/float64(len(group)-1))))
	}
	slices.Sort(out)
	return out
}
