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

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/serving"
)

// ordered is a query whose states merge by one another.
const ordered = `SELECT k, last(v) AS newest, arg_max(_offset, v) AS peak, arg_min(_offset, v) AS dip, bool_or(v > 898) AS high, count(DISTINCT v) AS seen, approx_count_distinct(v) AS about, approx_quantile(v, 0.5) AS middle, stddev(v) AS spread FROM (SELECT k, v, _offset FROM source WHERE v >= 0) GROUP BY k`

// TestStatesThatMergeByOneAnotherSurviveReplayAndLive: through staging, fill and live commits.
func TestStatesThatMergeByOneAnotherSurviveReplayAndLive(t *testing.T) {
	for _, mode := range []job.Mode{job.Kappa, job.Lambda} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			orderedStates(t, mode)
		})
	}
}

// orderedStates compares what is served with a naive pass: after replay and live and, of mode lambda, with a generation of both.
func orderedStates(t *testing.T, mode job.Mode) {
	r := newRig(t, kafkatest.Fake(t), 3, ordered, func(s *job.Spec) { s.DistinctMax, s.Mode = distinctMax, mode })
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
	r.sameStates()
	if mode == job.Kappa {
		return
	}
	g := &generations{rig: r, ctx: t.Context(), views: serving.New(serving.Config{})}
	if err := g.rotate(); err != nil {
		t.Fatal(err)
	}
	for p := range int32(3) {
		r.produce(p, 9000+int(p)*1000, 300)
	}
	r.caughtUp()
	for _, step := range []func() error{g.build, func() error { return g.show(1) }} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
		r.sameStates()
	}
}

// sameStates compares what is served with a naive pass.
func (r *rig) sameStates() {
	t := r.t
	t.Helper()
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

// distinctMax is less than what some keys have and more than what others do.
const distinctMax = 90

// middleOf is the middle of the bucket that a number below 1000 falls into.
func middleOf(v int64) int64 {
	switch {
	case v < 100:
		return v
	case v < 200:
		return (v + 1) / 2 * 2
	case v < 500:
		return (v + 2) / 5 * 5
	default:
		return (v + 5) / 10 * 10
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
		different, buckets := map[int64]bool{}, []int64{}
		for _, s := range group {
			sum += float64(s.v)
			different[s.v], buckets = true, append(buckets, middleOf(s.v))
		}
		slices.Sort(buckets)
		count := ""
		if len(different) <= distinctMax {
			count = strconv.Itoa(len(different))
		}
		mean := sum / float64(len(group))
		for _, s := range group {
			squares += (float64(s.v) - mean) * (float64(s.v) - mean)
		}
		peak := slices.MaxFunc(group, byValue)
		out = append(out, fmt.Sprintf("(%s,%d,%d,%d,%s,%s,%d,%d,%.6f)", k, slices.MaxFunc(group, byTime).v, peak.rec.Offset, slices.MinFunc(group, byValue).rec.Offset,
			map[bool]string{true: "t", false: "f"}[peak.v > 898], count, len(different), buckets[(len(buckets)+1)/2-1], math.Sqrt(squares/float64(len(group)-1))))
	}
	slices.Sort(out)
	return out
}
