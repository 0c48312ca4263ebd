package tui

import (
	"math"
	"strings"
)

// pen holds the characters of a bar: from nothing to a full cell, and what is not done.
type pen struct {
	steps []string
	track string
}

// bar draws a share of 0 to 1 in exactly width cells. A share below 1 is never drawn full, one above 0 never empty.
func (t theme) bar(as tone, share float64, width int) string {
	return t.stroke(t.block, as, share, width)
}

// thin is a bar for one of many rows: as lines they stay apart.
func (t theme) thin(as tone, share float64, width int) string {
	return t.stroke(t.line, as, share, width)
}

func (t theme) stroke(p pen, as tone, share float64, width int) string {
	if width <= 0 {
		return ""
	}
	steps := len(p.steps) - 1
	all := width * steps
	n := 0
	if !math.IsNaN(share) {
		n = int(math.Floor(min(1, max(0, share)) * float64(all)))
		if share > 0 {
			n = max(1, n)
		}
		if share < 1 {
			n = min(n, all-1)
		}
	}
	full, rest := n/steps, n%steps
	done := strings.Repeat(p.steps[steps], full)
	if rest > 0 {
		done += p.steps[rest]
	}
	return t.paint(as, done) + t.paint(dim, strings.Repeat(p.track, width-cells(done)))
}

// spark draws the last width values as one line, the highest as a nearly full block. A NaN is a gap; short series stand
// at the right, where now is.
func (t theme) spark(as tone, values []float64, width int) string {
	lines := t.chart(as, values, width, 1)
	if len(lines) == 0 {
		return ""
	}
	return lines[0]
}

// chart draws the last width values as columns height lines high.
func (t theme) chart(as tone, values []float64, width, height int) []string {
	if len(values) > width {
		values = values[len(values)-max(0, width):]
	}
	return t.chartTo(as, values, width, height, highest(values))
}

// scaled is spark with a top that is given; nothing is drawn for 0.
func (t theme) scaled(as tone, values []float64, width int, top float64) string {
	steps := len(t.heights) - 1
	shown := make([]float64, len(values))
	for i, v := range values {
		if shown[i] = v; v <= 0 {
			shown[i] = math.NaN()
		}
	}
	lines := t.chartTo(as, shown, width, 1, top*float64(steps-1)/float64(steps))
	if len(lines) == 0 {
		return ""
	}
	return lines[0]
}

// chartTo draws at most width values below a top.
func (t theme) chartTo(as tone, values []float64, width, height int, top float64) []string {
	if width <= 0 || height <= 0 {
		return nil
	}
	steps := len(t.heights) - 1
	if height == 1 && steps > 1 {
		top *= float64(steps) / float64(steps-1) // a gap to the line above
	}
	lines := make([]string, height)
	for row := range height {
		var b strings.Builder
		b.WriteString(strings.Repeat(" ", width-len(values)))
		below := (height - 1 - row) * steps
		for _, v := range values {
			b.WriteString(t.heights[min(steps, max(0, level(v, top, height*steps)-below))])
		}
		drawn := strings.TrimRight(b.String(), " ")
		lines[row] = t.paint(as, drawn) + strings.Repeat(" ", width-cells(drawn))
	}
	return lines
}

// level is how many of all steps a value fills: at least one when it is known, so that a line at zero is a line.
func level(v, top float64, all int) int {
	switch {
	case math.IsNaN(v):
		return 0
	case top <= 0 || v <= 0:
		return 1
	}
	return max(1, int(math.Round(v/top*float64(all))))
}

// highest is the largest known value, 0 when there is none.
func highest(values []float64) float64 {
	top := 0.0
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			top = max(top, v)
		}
	}
	return top
}

// squeeze makes a series of at most width values, each the mean of its share, so that a long one shows whole.
func squeeze(values []float64, width int) []float64 {
	if width <= 0 || len(values) <= width {
		return values
	}
	out := make([]float64, width)
	for i := range out {
		from, to := i*len(values)/width, (i+1)*len(values)/width
		sum, n := 0.0, 0
		for _, v := range values[from:to] {
			if !math.IsNaN(v) {
				sum += v
				n++
			}
		}
		out[i] = math.NaN()
		if n > 0 {
			out[i] = sum / float64(n)
		}
	}
	return out
}
