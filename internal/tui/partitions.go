package tui

import (
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess/status"
)

// shownPartitions are those that the filter leaves, worst first.
func (m *Model) shownPartitions(v status.Version) []status.Partition {
	var out []status.Partition
	for _, p := range m.ordered(v) {
		if m.matches(fmt.Sprintf("%s/%d %s %s %s", p.Topic, p.Partition, p.Verdict, verdictWords(p.Verdict), p.Reason)) {
			out = append(out, p)
		}
	}
	return out
}

// partitionsPart is a bar a partition, as many as fit.
func (m *Model) partitionsPart(v status.Version, width, height int) []string {
	t := m.theme
	if height < 2 {
		return nil
	}
	if v.Phase.Ended() {
		return []string{t.label("partitions") + t.paint(dim, "the version has ended")}
	}
	parts := m.shownPartitions(v)
	if len(parts) == 0 {
		text := "not sampled yet"
		if len(v.Partitions) > 0 {
			text = "none matches the filter"
		}
		return []string{t.label("partitions") + t.paint(dim, text)}
	}
	bar := min(24, max(6, (width-40)/8))
	g := grid{columns: []column{
		{title: "partition", least: 14, most: 32, tight: 6},
		{title: "", drop: 3, least: bar, most: bar},
		{title: "%", right: true, drop: 4, width: 4},
		{title: "unread", right: true, width: 9},
		{title: "behind", right: true, drop: 1, width: 6},
		{title: "reads", right: true, drop: 5, width: 8},
		{title: "eta", right: true, drop: 6, width: 6},
		{title: "verdict", drop: 2, width: 11, least: 11, most: 200, rest: true},
	}}
	_, as, _ := t.role(v)
	for _, p := range parts {
		g.rows = append(g.rows, m.partitionRow(v, p, as))
	}
	from := min(m.scroll, max(0, len(parts)-(height-1)))
	return g.lines(t, width, height, from, -1)
}

// behindOf is how far behind a partition is in time, which a replay does not know.
func behindOf(v status.Version, p status.Partition) string {
	if !v.Phase.Consumes() && p.LagRecords != nil && *p.LagRecords > 0 {
		return render.None
	}
	return seconds(p.LagSeconds)
}

func (m *Model) partitionRow(v status.Version, p status.Partition, as tone) []cell {
	t := m.theme
	share := partitionProgress(p, m.detail.Facts[v.Version])
	sign, verdictTone, verdict, reason := t.health(p.Verdict, p.ReasonCode, p.Reason)
	barTone := as
	if verdictTone == warn || verdictTone == bad {
		barTone = verdictTone
	}
	if p.Verdict == job.ReplayingRanges && p.LagRecords != nil && *p.LagRecords == 0 {
		sign, verdictTone, verdict = t.good, live, "read"
	}
	if p.Verdict == job.Lagging || verdict == "queued" {
		reason = "" // said by the numbers beside it, or above
	}
	return []cell{
		{text: clean(p.Topic), tail: fmt.Sprintf("/%d", p.Partition)},
		{draw: func(w int) string { return t.thin(barTone, share.share(), w) }},
		word(dim, share.whole()),
		word(plain, render.CountOf(p.LagRecords)),
		word(plain, behindOf(v, p)),
		word(plain, render.Rate(p.RecordsPerSecond)),
		word(plain, seconds(p.ETASeconds)),
		reasoned(verdictTone, sign+" "+verdict, reason),
	}
}
