package tui

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/status"
)

// reorderEvery is how often partitions with the same verdict change places: rows that swap with every number cannot be
// read.
const reorderEvery = 5 * time.Second

// order is how the partitions of a version were ordered last.
type order struct {
	version string
	at      time.Time
	rank    map[string]int
}

func partitionName(p status.Partition) string {
	return fmt.Sprintf("%s/%d", p.Topic, p.Partition)
}

// reorder sorts again if the order is of another version, or old.
func (m *Model) reorder() {
	v := m.focused()
	if v == nil || v.Version == m.order.version && m.now.Sub(m.order.at) < reorderEvery &&
		len(v.Partitions) == len(m.order.rank) {
		return
	}
	m.order = order{version: v.Version, at: m.now, rank: make(map[string]int, len(v.Partitions))}
	for i, p := range worstFirst(v.Partitions) {
		m.order.rank[partitionName(p)] = i
	}
}

// far is how many unread records a partition has, in steps of eight times as many.
func far(p status.Partition) int {
	steps := 0
	for n := orZero(p.LagRecords); n > 0; n /= 8 {
		steps++
	}
	return steps
}

// ordered are the partitions of a version, worst first: by verdict and by how far they are behind as it is now, then as
// they were ordered last.
func (m *Model) ordered(v status.Version) []status.Partition {
	out := worstFirst(v.Partitions)
	if m.order.version != v.Version {
		return out
	}
	verdicts := job.Verdicts()
	slices.SortStableFunc(out, func(a, b status.Partition) int {
		return cmp.Or(
			cmp.Compare(slices.Index(verdicts, a.Verdict), slices.Index(verdicts, b.Verdict)),
			cmp.Compare(far(b), far(a)),
			cmp.Compare(m.order.rank[partitionName(a)], m.order.rank[partitionName(b)]),
		)
	})
	return out
}
