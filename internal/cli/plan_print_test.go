package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/estimate"
	"github.com/kappactl/kappactl/internal/render"
)

// TestPlanOfManyPartitionsIsShort: a line a topic, and the numbers of all of them.
func TestPlanOfManyPartitionsIsShort(t *testing.T) {
	r := planResult{Job: "clicks", Action: "stage", Version: "v1", Replay: estimate.Replay{
		Start: "earliest", Topics: []estimate.Topic{
			{Topic: "a", RetentionMS: -1, RetentionBytes: -1}, {Topic: "b", RetentionMS: 1000, RetentionBytes: -1},
		},
	}}
	for i := range int32(planRanges) {
		r.Replay.Partitions = append(r.Replay.Partitions, estimate.Partition{Topic: "a", Partition: i, From: 5, To: 105})
	}
	show := func() string {
		t.Helper()
		var out bytes.Buffer
		if err := r.print(&out, render.Style{}); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if got := show(); strings.Count(got, "replay\ta/") != planRanges {
		t.Errorf("few partitions:\n%s", got)
	}
	r.Replay.Partitions = append(r.Replay.Partitions, estimate.Partition{Topic: "b", Partition: 0, From: 0, To: 7})
	if got := show(); !strings.Contains(got, "replay\ta: 16 partitions, 1,600 offsets") ||
		!strings.Contains(got, "replay\tb: 1 partition, 7 offsets") || strings.Contains(got, "replay\ta/") {
		t.Errorf("many partitions:\n%s", got)
	}
}
