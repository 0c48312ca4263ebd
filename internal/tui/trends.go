package tui

import (
	"fmt"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess/status"
)

// trendsPart is how the version read, what arrived, and how far behind it was, since the interface began.
func (m *Model) trendsPart(r room, v status.Version, width int) []string {
	if !r.trends || v.Phase.Ended() {
		return nil
	}
	h := m.curve(m.job, v.Version)
	if h == nil || len(h.samples) < 2 {
		out := []string{m.theme.label("trends") + m.theme.paint(dim, "drawn while you watch")}
		if r.chart > 0 {
			out = append(out, make([]string, r.chart+2)...) // as high as they will be
		}
		return out
	}
	if r.chart == 0 {
		return m.sparkLine(v, h, width)
	}
	t := m.theme
	spark := min(max(10, width-margin-12), 120)
	out := []string{
		t.label("reads") + t.spark(candidate, squeeze(h.reads(), spark), spark) + " " + render.Rate(latest(h.reads())),
		t.label("arrives") + t.spark(dim, squeeze(h.made(), spark), spark) + " " + render.Rate(latest(h.made())),
	}
	return append(out, m.lagChart(v, h, spark, r.chart)...)
}

// sparkLine is the three of them on one line.
func (m *Model) sparkLine(v status.Version, h *history, width int) []string {
	t := m.theme
	each := (width - margin - 44) / 3
	if each < 4 {
		each = 0
	}
	part := func(name string, as tone, values []float64, now string) string {
		return t.paint(dim, name+" ") + t.spark(as, squeeze(values, each), each) + " " + now
	}
	return []string{t.label("trends") + strings.Join([]string{
		part("reads", candidate, h.reads(), t.fit(render.Rate(latest(h.reads())), 8, false)),
		part("arrive", dim, h.made(), t.fit(render.Rate(latest(h.made())), 8, false)),
		part("lag", lagTone(v), h.lags(), t.fit(m.lagNow(h), 6, false)),
	}, " ")}
}

// lagTone is amber only when the lag does not get smaller by itself.
func lagTone(v status.Version) tone {
	if v.Verdict == job.NotConverging || v.Verdict == job.Stalled || v.Verdict == job.Unhealthy {
		return warn
	}
	return candidate
}

func (m *Model) lagNow(h *history) string {
	lag := latest(h.lags())
	if lag == nil {
		return render.None
	}
	n := int64(*lag)
	return short(&n)
}

// lagChart is the curve of unread records with its highest value and how far back it reaches.
func (m *Model) lagChart(v status.Version, h *history, width, height int) []string {
	t := m.theme
	values := squeeze(h.lags(), width)
	lines := t.chart(lagTone(v), values, width, height)
	top := int64(highest(values))
	for i, line := range lines {
		label, right := "", ""
		if i == 0 {
			label, right = "lag", t.paint(dim, short(&top))
		}
		if i == len(lines)-1 {
			right = m.lagNow(h)
		}
		lines[i] = t.label(label) + line + " " + right
	}
	back := fmt.Sprintf("%s ago", render.Duration(h.span()))
	axis := t.label("") + strings.Repeat(" ", max(0, width-len(values))) + t.paint(dim, back)
	if room := len(values) - cells(back) - 3; room > 0 {
		axis += strings.Repeat(" ", room) + t.paint(dim, "now")
	}
	return append(lines, axis)
}
