package tui

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kappactl/kappactl/abtest"
	"github.com/kappactl/kappactl/abtest/judge"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
)

// experimentPage is the newest experiment of a job: its arms, the course of their weights, and what was decided, the
// newest first.
func (m *Model) experimentPage(width, height int) []string {
	if m.detail == nil {
		return m.waiting()
	}
	c := m.detail.Experiment
	if c == nil {
		return []string{"", "  " + m.theme.paint(dim,
			"the job has had no experiment: kappactl ab start "+clean(string(m.job)))}
	}
	head := append([]string{m.runState(*c)}, m.whyLines(*c, width, height)...)
	g, chosen := m.armGrid(*c), m.chosenArm(*c)
	room := max(2, min(len(g.rows)+1, height-len(head)))
	blocks := [][]string{head, g.lines(m.theme, width, room, window(chosen, len(g.rows), room-1), chosen)}
	if height >= 16 {
		blocks = append(blocks, m.weightLines(*c, width), m.rewardLines(*c, width), m.guardLines(*c, width))
	}
	var out []string
	for _, b := range blocks {
		if height >= 30 && len(b) > 0 {
			out = append(out, "")
		}
		out = append(out, b...)
	}
	if height >= 30 {
		out = append(out, "")
	}
	if room := height - len(out); room >= 2 {
		out = append(out, m.decisionGrid(*c).lines(m.theme, width, room, 0, -1)...)
	}
	return out[:min(len(out), height)]
}

// runState is the run and how it is set up.
func (m *Model) runState(c abtest.Course) string {
	t := m.theme
	sign, as := t.live, live
	switch c.State {
	case abtest.Paused:
		sign, as = t.warn, warn
	case abtest.Ended:
		sign, as = t.ended, dim
	case abtest.Running:
	}
	text := t.paint(as, sign+" "+string(c.State)) + ", began " + ago(m.now, c.StartedAt) + " ago"
	if c.EndedAt != nil {
		text += ", ended " + ago(m.now, *c.EndedAt) + " ago"
	}
	about := fmt.Sprintf("   %s, coverage %.3g%%, epoch %d", c.Assign, 100*c.Coverage, c.Epoch)
	return t.label(fmt.Sprintf("run %d", c.Run)) + text + t.paint(dim, about)
}

// whyLines are the reason of the state, and whether the subjects came as the weights say.
func (m *Model) whyLines(c abtest.Course, width, height int) []string {
	t := m.theme
	var out []string
	name := "because"
	for _, line := range t.wrap(clean(c.Reason), width-margin-2, max(1, min(3, height-8))) {
		out = append(out, t.label(name)+line)
		name = ""
	}
	if c.Comparison != nil && c.Comparison.Next != "" {
		out = append(out, t.label("next")+t.paint(strong, string(c.Comparison.Next))+"  "+clean(c.Comparison.NextReason))
	}
	r := c.SampleRatio
	switch {
	case r.Impossible:
		out = append(out, t.label("ratio")+t.paint(bad,
			t.bad+" an arm without weight has subjects: do not trust the comparison"))
	case r.Freedom > 0 && r.P < mismatch:
		out = append(out, t.label("ratio")+t.paint(bad,
			fmt.Sprintf("%s p %.2g: something loses subjects of an arm; do not trust the comparison", t.bad, r.P)))
	case r.Freedom > 0:
		out = append(out, t.label("ratio")+t.paint(live, t.good)+fmt.Sprintf(" subjects come as the weights say, p %.2g",
			r.P))
	}
	for i := range out {
		out[i] = t.clip(out[i], width)
	}
	return out
}

// mismatch is the p value below which subjects do not come as the weights say.
const mismatch = 0.001

func (m *Model) armGrid(c abtest.Course) grid {
	t := m.theme
	g := grid{columns: []column{
		{title: "arm"},
		{title: "weight", right: true, width: 6},
		{title: "", drop: 6, least: 8, most: 24},
		{title: "subjects", right: true},
		{title: "mean", right: true, drop: 4},
		{title: "to control", drop: 3},
		{title: "best", right: true, drop: 2},
		{title: "phase", drop: 7},
		{title: "verdict", least: 8, most: 30, tight: 6, drop: 5},
	}}
	estimates := estimatesOf(c)
	if estimates == nil {
		g.columns = slices.DeleteFunc(g.columns, func(c column) bool {
			return c.title == "mean" || c.title == "to control" ||
				c.title == "best"
		})
	}
	for i, a := range c.Arms {
		as, name := armTone(i), t.candidate+" "+a.Version
		if a.Control {
			name = t.live + " " + a.Version + " control"
		}
		sign, tone := t.verdictLook(a.Verdict)
		words := sign + " " + verdictWords(a.Verdict)
		if a.Verdict == "" {
			words = render.None
		}
		row := []cell{
			word(as, name), word(plain, share(a.Weight)),
			{draw: func(w int) string { return t.bar(as, a.Weight, w) }},
			word(plain, render.Count(a.Subjects)),
		}
		if estimates != nil {
			row = append(row, estimateCells(estimates[i])...)
		}
		g.rows = append(g.rows, append(row, word(dim, strings.ReplaceAll(string(a.Phase), "_", " ")), word(tone, words)))
	}
	return g
}

// estimatesOf are what the rewards say about the arms, in their order; nil without rewards.
func estimatesOf(c abtest.Course) []judge.ArmEstimate {
	if c.Comparison == nil || c.Comparison.Rewards == nil || len(c.Comparison.Estimates.Arms) != len(c.Arms) {
		return nil
	}
	return c.Comparison.Estimates.Arms
}

// estimateCells are the mean reward of an arm, its difference from the control with the interval, and the probability
// that it is the best.
func estimateCells(e judge.ArmEstimate) []cell {
	mean, difference, best := render.None, render.None, render.None
	if e.Subjects > 0 {
		mean = fmt.Sprintf("%.3g", e.Mean)
	}
	switch {
	case e.Difference != nil && e.Lo != nil && e.Hi != nil:
		difference = fmt.Sprintf("%+.2g (%+.2g to %+.2g)", *e.Difference, *e.Lo, *e.Hi)
	case e.Difference != nil:
		difference = fmt.Sprintf("%+.2g", *e.Difference)
	}
	if e.Best != nil {
		best = fmt.Sprintf("%.1f%%", 100**e.Best)
	}
	return []cell{word(plain, mean), word(plain, difference), word(plain, best)}
}

// share is a share in percent, as short as it is.
func share(v float64) string { return fmt.Sprintf("%.3g%%", 100*v) }

// armTone tells arms apart; the control is what readers see without an experiment.
func armTone(i int) tone {
	if i == 0 {
		return live
	}
	return []tone{candidate, standby, warn}[(i-1)%3]
}

// mostLines is how many arms or guardrails the page has lines for.
const mostLines = 4

// weightLines is the course of the weights, a line for each arm, from the start to now.
func (m *Model) weightLines(c abtest.Course, width int) []string {
	values := c.WeightsOver(m.sparkRoom(width))
	return m.armLines(c, width, "weights", values, func(i int) string { return share(c.Arms[i].Weight) })
}

// rewardLines is the course of the mean rewards, all on one scale from the least to the highest.
func (m *Model) rewardLines(c abtest.Course, width int) []string {
	values := c.MeansOver(m.sparkRoom(width))
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, arm := range values {
		for _, v := range arm {
			if !math.IsNaN(v) {
				lo, hi = min(lo, v), max(hi, v)
			}
		}
	}
	if lo > hi {
		return nil
	}
	last := make([]string, len(values))
	for i, arm := range values {
		if last[i] = fmt.Sprintf("%.3g", arm[len(arm)-1]); math.IsNaN(arm[len(arm)-1]) {
			last[i] = render.None
		}
		for k, v := range arm {
			arm[k] = 0.1 + 0.9*(v-lo)/max(hi-lo, 1e-300)
		}
	}
	return m.armLines(c, width, "rewards", values, func(i int) string { return last[i] })
}

// sparkRoom is how wide a line of values is.
func (m *Model) sparkRoom(width int) int { return min(max(10, width-margin-16), 120) }

// armLines are values between 0 and 1 in the course of a run, a line for each arm.
func (m *Model) armLines(c abtest.Course, width int, name string, values [][]float64, now func(i int) string) []string {
	t, room := m.theme, m.sparkRoom(width)
	var out []string
	for i, arm := range values[:min(len(values), mostLines)] {
		if i > 0 {
			name = ""
		}
		out = append(out, t.clip(t.label(name)+t.fit(t.scaled(armTone(i), arm, room, 1), room,
			false)+" "+t.fit(c.Arms[i].Version, 4, false)+now(i), width))
	}
	return out
}

// guardLines are the guardrails, those that are breached first.
func (m *Model) guardLines(c abtest.Course, width int) []string {
	if c.Comparison == nil {
		return nil
	}
	t, name := m.theme, "guards"
	guards := slices.Clone(c.Comparison.Guards)
	slices.SortStableFunc(guards, func(a, b abtest.GuardStatus) int { return guardRank(a) - guardRank(b) })
	var out []string
	for i, g := range guards {
		if len(out) == mostLines-1 && len(guards) > mostLines {
			return append(out, t.label("")+t.paint(dim,
				fmt.Sprintf("and %d more: kappactl ab report %s", len(guards)-i, clean(string(c.Job)))))
		}
		sign, as, words := t.good, live, clean(g.Reason)
		switch {
		case g.Breached:
			sign, as, words = t.bad, bad, "breached, "+string(g.Action)+": "+words
		case g.State == "fail":
			sign, as = t.bad, bad
		case g.State == "":
			sign, as, words = t.dot, dim, "not looked at yet"
		case g.State != "pass":
			sign, as = t.warn, warn
		}
		out = append(out, t.clip(t.label(name)+t.paint(as, sign+" "+clean(g.Name))+"  "+words, width))
		name = ""
	}
	return out
}

func guardRank(g abtest.GuardStatus) int {
	switch {
	case g.Breached:
		return 0
	case g.State == "fail":
		return 1
	case g.State == "pass":
		return 3
	case g.State == "":
		return 4
	}
	return 2
}

func (m *Model) decisionGrid(c abtest.Course) grid {
	g := grid{columns: []column{
		{title: "time"},
		{title: "decision"},
		{title: "weights", drop: 2},
		{title: "by", drop: 3, least: 6, most: 20},
		{title: "why", least: 16, most: 400, tight: 8, rest: true},
	}}
	for i := range c.Decisions {
		d := c.Decisions[len(c.Decisions)-1-i]
		weights := make([]string, len(d.Weights))
		for k, w := range d.Weights {
			weights[k] = w.Version + " " + share(w.Weight)
		}
		as := candidate
		if d.Verdict == abtest.Stopped {
			as = warn
		}
		g.rows = append(g.rows, []cell{
			word(dim, since(m.now, d.At)), word(as, string(d.Verdict)), word(plain, strings.Join(weights, ", ")),
			word(dim, d.By), word(plain, d.Message),
		})
	}
	return g
}

// chosenArm is the arm that is selected.
func (m *Model) chosenArm(c abtest.Course) int { return max(0, min(m.scroll, len(c.Arms)-1)) }

// arm is the version of the arm that is selected.
func (m *Model) arm() (ref job.Ref, control bool) {
	c := m.detail.Experiment
	a := c.Arms[m.chosenArm(*c)]
	n, err := job.ParseNumber(a.Version)
	if err != nil {
		return job.Ref{}, true
	}
	return job.Ref{Job: m.job, Number: n}, a.Control
}
