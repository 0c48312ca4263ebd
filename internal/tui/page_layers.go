package tui

import (
	"fmt"
	"strings"

	"github.com/kappactl/kappactl/batchlayer"
	"github.com/kappactl/kappactl/batchlayer/generation"
	"github.com/kappactl/kappactl/internal/render"
)

// layersPage is the batch and the speed layer of a lambda version: what readers see, the run under way, and all
// generations, the newest first.
func (m *Model) layersPage(width, height int) []string {
	if m.detail == nil {
		return m.waiting()
	}
	l := m.layers()
	if l == nil {
		return []string{"", "  " + m.theme.paint(dim, "no version of the job is one of mode lambda")}
	}
	out := []string{m.readersLine(*l)}
	for _, line := range []string{m.runLine(*l, width), m.nextLine(), m.archiveLine()} {
		if line != "" {
			out = append(out, line)
		}
	}
	if height < 10 {
		out = out[:min(len(out), max(1, height-4))]
	}
	for i := range out {
		out[i] = m.theme.clip(out[i], width)
	}
	if height >= 14 {
		out = append(append([]string{""}, out...), "")
	}
	chosen := m.chosenGeneration()
	about := m.aboutGeneration(*l, width, height-len(out))
	room := height - len(out) - len(about)
	g := m.generations(*l)
	lines := g.lines(m.theme, width, room, window(chosen, len(g.rows), room-1), chosen)
	out = append(out, lines...)
	for range room - len(lines) {
		out = append(out, "")
	}
	return append(out, about...)
}

// layers are those of the version that was chosen, else of live, else of the newest that has some; nil when none has.
func (m *Model) layers() *batchlayer.Layers {
	if m.detail == nil {
		return nil
	}
	of := func(version string) *batchlayer.Layers {
		for i := range m.detail.Layers {
			if m.detail.Layers[i].Version == version {
				return &m.detail.Layers[i]
			}
		}
		return nil
	}
	if l := of(m.focus); l != nil {
		return l
	}
	if live := m.detail.Status.Live; live != nil {
		if l := of(*live); l != nil {
			return l
		}
	}
	if len(m.detail.Layers) > 0 {
		return &m.detail.Layers[0]
	}
	return nil
}

// readersLine describes what readers of the version see.
func (m *Model) readersLine(l batchlayer.Layers) string {
	t := m.theme
	head := t.label("readers of " + l.Version)
	if l.Live == nil {
		return head + t.paint(dim, "no generation yet: its replay is the first one")
	}
	epochs := fmt.Sprintf("epoch %d", l.Epoch)
	if l.Epochs > 1 {
		epochs = fmt.Sprintf("epochs %d to %d", l.Live.Generation, l.Epoch)
	}
	text := t.paint(live, t.live+fmt.Sprintf(" generation %d", l.Live.Generation)) + ", cut " + ago(m.now, l.Live.CutAt) +
		" ago, with " + epochs
	if l.SpeedRows != nil {
		text += t.paint(dim, fmt.Sprintf("   about %s in the speed layer", render.Plural(*l.SpeedRows, "row")))
	}
	return head + text
}

// runLine is the run under way, or what became of the last one.
func (m *Model) runLine(l batchlayer.Layers, width int) string {
	t := m.theme
	head := t.label("run")
	if b := l.Building; b != nil && b.Progress != nil {
		text := fmt.Sprintf("generation %d: %s ", b.Generation, b.Progress.Step)
		if b.Progress.Step == "read" {
			text += t.bar(candidate, b.Progress.Share(), min(24, max(4, width/6))) +
				fmt.Sprintf(" %.0f%%", 100*b.Progress.Share())
			if b.Progress.ETASeconds != nil {
				text += ", " + seconds(b.Progress.ETASeconds) + " left"
			}
		}
		return head + t.paint(candidate, t.candidate+" ") + text + t.paint(dim, "   "+stepTimes(*b))
	}
	if l.Last == nil {
		return head + t.paint(dim, "none yet")
	}
	text, as := fmt.Sprintf("generation %d was shown", l.Last.Generation), plain
	if l.Last.ExitCode != nil {
		text, as = fmt.Sprintf("%s generation %d failed", t.bad, l.Last.Generation), bad
	}
	return head + t.paint(dim, "none, the last: ") + t.paint(as, text) + t.paint(dim, "   "+stepTimes(*l.Last))
}

// stepTimes is where the time of a run went.
func stepTimes(g batchlayer.Generation) string {
	var parts []string
	for _, step := range batchlayer.Steps() {
		if s, done := g.Timings[step]; done {
			parts = append(parts, step+" "+seconds(&s))
		}
	}
	return strings.Join(parts, ", ")
}

// nextLine is when the next run begins by itself.
func (m *Model) nextLine() string {
	t, s := m.theme, m.detail.Schedule
	if s == nil {
		return t.label("schedule") + t.paint(dim, "none: runs begin by command")
	}
	text, as := scheduleWords(m.now, s)
	return t.label("schedule") + t.paint(as, text) + t.paint(dim, "   "+clean(s.Expression)+" "+clean(s.Zone))
}

// archiveLine is how much is archived of the job's topics.
func (m *Model) archiveLine() string {
	t, a := m.theme, m.detail.Archive
	if a == nil {
		return ""
	}
	as, behind := plain, render.Plural(a.Behind, "offset")+" behind"
	if a.Troubled {
		as, behind = bad, t.bad+" "+behind+": kappactl archive status"
	}
	return t.label("archive") + render.Plural(a.Files, "file") + ", " + render.Bytes(a.Bytes) + ", " + t.paint(as, behind)
}

func (m *Model) generations(l batchlayer.Layers) grid {
	g := grid{columns: []column{
		{title: "generation", right: true},
		{title: "state", width: 10},
		{title: "kind", drop: 5},
		{title: "cut", drop: 4},
		{title: "age", right: true, width: 6},
		{title: "rows", right: true, drop: 2},
		{title: "bytes", right: true, drop: 3},
		{title: "changed", right: true, drop: 6},
		{title: "took", right: true, drop: 1},
		{title: "what", least: 10, most: 300, tight: 4, rest: true, drop: 7},
	}}
	for _, one := range l.Generations {
		g.rows = append(g.rows, m.generationRow(one))
	}
	return g
}

func (m *Model) generationRow(g batchlayer.Generation) []cell {
	t := m.theme
	sign, as := t.generationLook(g.State)
	size := render.None
	if g.Bytes != nil {
		size = render.Bytes(*g.Bytes)
	}
	what := g.Error
	if g.Accepted && what == "" {
		what = "accepted"
	}
	return []cell{
		word(strong, fmt.Sprint(g.Generation)), word(as, sign+" "+string(g.State)), word(dim, g.Kind()),
		word(dim, since(m.now, g.CutAt)),
		word(plain, ago(m.now, g.CutAt)), word(plain, render.CountOf(g.Rows)), word(plain, size),
		word(plain, render.CountOf(g.Changed)),
		word(plain, seconds(g.Seconds)), word(as, what),
	}
}

func (t theme) generationLook(s generation.State) (sign string, as tone) {
	switch s {
	case generation.Live:
		return t.live, live
	case generation.Kept:
		return t.standby, standby
	case generation.Building:
		return t.candidate, candidate
	case generation.Failed:
		return t.bad, bad
	case generation.Retired:
	}
	return t.ended, dim
}

// aboutGeneration is the whole text about the generation that is selected, at the foot of a page that is high enough.
func (m *Model) aboutGeneration(l batchlayer.Layers, width, height int) []string {
	g := m.selectedGeneration()
	if g == nil || g.Error == "" || height < 10 {
		return nil
	}
	out := []string{"", "  " + m.theme.paint(dim, fmt.Sprintf("generation %d of %s", g.Generation, l.Version))}
	for _, line := range m.theme.wrap(clean(g.Error), width-4, 3) {
		out = append(out, "  "+line)
	}
	return out
}

// chosenGeneration is the place of the selected one.
func (m *Model) chosenGeneration() int {
	l := m.layers()
	if l == nil {
		return 0
	}
	return max(0, min(m.scroll, len(l.Generations)-1))
}

func (m *Model) selectedGeneration() *batchlayer.Generation {
	l := m.layers()
	if l == nil || len(l.Generations) == 0 {
		return nil
	}
	return &l.Generations[m.chosenGeneration()]
}
