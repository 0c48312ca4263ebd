package plan

import (
	"testing"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
)

func TestAStartPointThatLeavesNothingOfATopicIsWarnedOf(t *testing.T) {
	a0, a1, b0 := job.Partition{Topic: "a"}, job.Partition{Topic: "a", ID: 1}, job.Partition{Topic: "b"}
	topics := []job.TopicFacts{
		{Name: "a", Partitions: []job.PartitionFacts{{Partition: a0, Start: 10, LastStable: 100, End: 100}, {Partition: a1}}},
		{Name: "b", Partitions: []job.PartitionFacts{{Partition: b0, Start: 7, LastStable: 7, End: 9}}},
	}
	from := func(a, b int64) []job.Frozen {
		return []job.Frozen{
			{Partition: a0, Range: job.Range{From: a, To: 100}}, {Partition: a1}, {Partition: b0, Range: job.Range{From: b, To: max(b, 7)}},
		}
	}
	for name, c := range map[string]struct {
		start  string
		frozen []job.Frozen
		want   string // empty: no warning
	}{
		"all of it":                 {"earliest", from(10, 7), ""},
		"some of it":                {"-1h", from(99, 9), ""},
		"nothing of what it holds":  {"latest", from(100, 7), reason.NothingToReplay("latest", []string{"a"}, 90).Text()},
		"nothing by offsets":        {"", from(100, 7), reason.NothingToReplay("offsets", []string{"a"}, 90).Text()},
		"an empty topic is no loss": {"latest", from(10, 7), ""},
	} {
		if got := nothingToReplay(c.start, topics, c.frozen); got.Text() != c.want && (c.want != "" || !got.IsZero()) {
			t.Errorf("%s: %q, want %q", name, got.Text(), c.want)
		}
	}
}
