package tui

import (
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess"
)

// shownPartitions are those that the filter leaves, worst first.
func (m *Model) shownPartitions(v reprocess.VersionStatus) []reprocess.PartitionStatus {
	var out []reprocess.PartitionStatus
	for _, p := range worstFirst(v.Partitions) {
		if m.matches(fmt.Sprintf("%s/%d %s %s %s", p.Topic, p.Partition, p.Verdict, verdictWords(p.Verdict), p.Reason)) {
			out = append(out, p)
		}
	}
	return out
}

// partitionsPart is a bar a partition, as many as fit.
func (m *Model) partitionsPart(v reprocess.VersionStatus, width, height int) []string {
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
	g := grid{columns: []column{
		{title: "partition", least: 14, most: 32},
		{title: "", drop: 3, least: barLeast(width), most: max(10, width/4)},
		{title: "%", right: true, drop: 4},
		{title: "unread", right: true},
		{title: "behind", right: true, drop: 1},
		{title: "reads", right: true, drop: 5},
		{title: "eta", right: true, drop: 6},
		{title: "verdict", drop: 2, least: 16, most: 80},
	}}
	_, as, _ := t.role(v)
	for _, p := range parts {
		g.rows = append(g.rows, m.partitionRow(v, p, as))
	}
	from := min(m.scroll, max(0, len(parts)-(height-1)))
	lines := g.lines(t, width, height, from, -1)
	return t.withScroll(lines, from, len(parts), width)
}

// barLeast is how narrow the bars of rows may become.
func barLeast(width int) int {
	if width < 100 {
		return 6
	}
	return min(24, width/8)
}

// scrolled says which rows of a list are in sight, when not all are.
func scrolled(t theme, from, shown, all int) string {
	if shown >= all || shown <= 0 {
		return ""
	}
	arrows := ""
	if from > 0 {
		arrows += t.up
	}
	if from+shown < all {
		arrows += t.down
	}
	return fmt.Sprintf("%d%s%d/%d %s", from+1, t.dash, from+shown, all, arrows)
}

// said verdicts have reasons that only repeat the numbers beside them.
func said(v job.Verdict) bool {
	return v == job.Ready || v == job.Lagging || v == job.ReplayingRanges
}

// withScroll ends the line of titles with what scrolled says; the titles give way.
func (t theme) withScroll(lines []string, from, all, width int) []string {
	if more := scrolled(t, from, len(lines)-1, all); more != "" {
		lines[0] = t.ends(t.clip(lines[0], width-cells(more)-2), t.paint(dim, more), width)
	}
	return lines
}

func (m *Model) partitionRow(v reprocess.VersionStatus, p reprocess.PartitionStatus, as tone) []cell {
	t := m.theme
	share := partitionProgress(p, m.detail.Facts[v.Version])
	sign, verdictTone := t.verdictLook(p.Verdict)
	barTone := as
	if verdictTone == warn || verdictTone == bad {
		barTone = verdictTone
	}
	verdict, reason := verdictWords(p.Verdict), ""
	if p.Verdict == job.ReplayingRanges && p.LagRecords != nil && *p.LagRecords == 0 {
		sign, verdictTone, verdict = t.good, live, "read"
	}
	if p.Reason != "" && !said(p.Verdict) {
		reason = ": " + p.Reason
	}
	return []cell{
		word(plain, fmt.Sprintf("%s/%d", p.Topic, p.Partition)),
		{draw: func(w int) string { return t.thin(barTone, share.share(), w) }},
		word(dim, share.percent()),
		word(plain, render.CountOf(p.LagRecords)),
		word(plain, render.Seconds(p.LagSeconds)),
		word(plain, render.Rate(p.RecordsPerSecond)),
		word(plain, render.Seconds(p.ETASeconds)),
		word(verdictTone, sign+" "+verdict+reason),
	}
}
