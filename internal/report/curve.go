package report

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess"
)

// chart is one curve over time as SVG: its path, the axis and the phases behind it. Lengths are in the units of its view box.
type chart struct {
	Title  string
	Width  int
	Height int
	Line   string // of the SVG path; gaps where the value is not known
	Area   string
	Bands  []band
	Ticks  []tick // of values, from the bottom
	Marks  []tick // of times, from the left
	Peak   string
	Flip   *flipMark // nil: not in this time
}

type band struct {
	X, Width float64
	Phase    job.Phase
	Name     bool // there is room for the name
	Even     bool
}

// flipMark is when readers were given the version; Late: its name goes to the left of it.
type flipMark struct {
	At   float64
	Late bool
}

type tick struct {
	At   float64
	Text string
}

const (
	chartWidth, chartHeight = 900, 200
	nameRoom                = 70 // that the name of a phase needs
)

// charts are the curves of lag and speed. A deployment that waited long after it was caught up gets two of each, so that its beginning
// can be seen beside what came then.
func charts(points []reprocess.LagPoint, flip *time.Time) []chart {
	if len(points) < 2 {
		return nil
	}
	var out []chart
	origin := points[0].At
	add := func(points []reprocess.LagPoint, suffix string) {
		lag := newChart(origin, points, "Records behind"+suffix, func(p reprocess.LagPoint) *float64 { return whole(p.LagRecords) }, func(v float64) string { return render.Count(int64(v)) })
		rate := newChart(origin, points, "Records read a second"+suffix, func(p reprocess.LagPoint) *float64 { return p.RecordsPerSecond }, func(v float64) string { return strings.TrimSuffix(render.Rate(&v), "/s") })
		lag.flip(points, flip)
		out = append(out, lag)
		if rate.Line != "" && rate.Peak != "0" { // else it was over before a speed was measured
			rate.flip(points, flip)
			out = append(out, rate)
		}
	}
	if n := beginning(points); n > 1 && len(points)-n > 0 {
		add(points[:n], ", until it was caught up")
		add(points[n-1:], ", since then")
		return out
	}
	add(points, "")
	return out
}

// beginning is how many points show a deployment until a little after it was first caught up, when that is less than a quarter of the
// time; else 0.
func beginning(points []reprocess.LagPoint) int {
	start, all := points[0].At, points[len(points)-1].At.Sub(points[0].At)
	for _, p := range points {
		if p.Phase != job.CaughtUp && p.Phase != job.Verified && p.Phase != job.Live {
			continue
		}
		until := p.At.Sub(start) * 5 / 4
		if until*4 > all {
			return 0
		}
		n := 0
		for n < len(points) && points[n].At.Sub(start) <= until {
			n++
		}
		return n
	}
	return 0
}

func whole(n *int64) *float64 {
	if n == nil {
		return nil
	}
	v := float64(*n)
	return &v
}

func newChart(origin time.Time, points []reprocess.LagPoint, title string, value func(reprocess.LagPoint) *float64, words func(float64) string) chart {
	c := chart{Title: title, Width: chartWidth, Height: chartHeight}
	start, span := points[0].At, points[len(points)-1].At.Sub(points[0].At)
	top := 0.0
	for _, p := range points {
		if v := value(p); v != nil {
			top = max(top, *v)
		}
	}
	c.Peak = words(top)
	top = nice(top)
	x := func(at time.Time) float64 { return tenth(float64(at.Sub(start)) / float64(max(1, span)) * chartWidth) }
	y := func(v float64) float64 { return tenth(chartHeight - v/top*chartHeight) }
	c.trace(points, value, x, y)
	c.bands(points, x)
	for i := range 5 {
		v := top * float64(i) / 4
		c.Ticks = append(c.Ticks, tick{y(v), words(v)})
		c.Marks = append(c.Marks, tick{float64(chartWidth * i / 4), "+" + render.Duration(start.Sub(origin)+span*time.Duration(i)/4)})
	}
	return c
}

// flip marks when readers were given the version, when that lies in the time of the points or right behind it.
func (c *chart) flip(points []reprocess.LagPoint, at *time.Time) {
	start, end := points[0].At, points[len(points)-1].At
	span := end.Sub(start)
	if at == nil || at.Before(start) || at.Sub(end) > span/5 {
		return
	}
	x := min(chartWidth, tenth(float64(at.Sub(start))/float64(max(1, span))*chartWidth))
	c.Flip = &flipMark{At: x, Late: x > chartWidth-nameRoom}
}

// trace draws the line and the area below it.
func (c *chart) trace(points []reprocess.LagPoint, value func(reprocess.LagPoint) *float64, x func(time.Time) float64, y func(float64) float64) {
	var line, area strings.Builder
	from := -1.0
	last := 0.0
	end := func() {
		if from >= 0 {
			fmt.Fprintf(&area, "L%g %dL%g %dZ", last, chartHeight, from, chartHeight)
		}
		from = -1
	}
	for _, p := range points {
		v := value(p)
		if v == nil {
			end()
			continue
		}
		command := "L"
		if from < 0 {
			command, from = "M", x(p.At)
		}
		last = x(p.At)
		fmt.Fprintf(&line, "%s%g %g", command, last, y(*v))
		fmt.Fprintf(&area, "%s%g %g", command, last, y(*v))
	}
	end()
	c.Line, c.Area = line.String(), area.String()
}

// bands are the phases behind the curve.
func (c *chart) bands(points []reprocess.LagPoint, x func(time.Time) float64) {
	for i, p := range points {
		if i > 0 && p.Phase == points[i-1].Phase {
			continue
		}
		if n := len(c.Bands); n > 0 {
			c.Bands[n-1].Width = tenth(x(p.At) - c.Bands[n-1].X)
		}
		c.Bands = append(c.Bands, band{X: x(p.At), Phase: p.Phase, Even: len(c.Bands)%2 == 0})
	}
	if n := len(c.Bands); n > 0 {
		c.Bands[n-1].Width = tenth(chartWidth - c.Bands[n-1].X)
	}
	for i := range c.Bands {
		c.Bands[i].Name = c.Bands[i].Width > nameRoom
	}
}

// nice is the next number above v of the form 1, 2, 4 or 8 times a power of ten, so that its quarters are round.
func nice(v float64) float64 {
	if v <= 4 {
		return 4
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 4, 8, 10} {
		if v <= m*power {
			return m * power
		}
	}
	return 10 * power
}

func tenth(v float64) float64 { return math.Round(v*10) / 10 }
