package report

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// chart is one curve over time as SVG: its path, the axes and the phases in the background. Lengths are in the units of
// its view box.
type chart struct {
	Title  string
	Width  int
	Height int
	Line   string // SVG path data; unknown values are gaps
	Area   string
	Bands  []band
	Ticks  []tick // of values, from the bottom
	Marks  []tick // of times, from the left
	Peak   string
	Flip   *flipMark // nil if the flip is outside the chart
}

type band struct {
	X, Width float64
	Phase    job.Phase
	Name     bool // there is room for the name
	Even     bool
}

// flipMark marks the time of the flip. If Late is set, its name is to the left of the mark.
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
	nameRoom                = 70 // width that the name of a phase needs
)

// charts returns the curves of lag and speed. A deployment that ran for long after it caught up gets two of each: the
// beginning and the whole time.
func charts(points []ledger.LagPoint, flip *time.Time) []chart {
	if len(points) < 2 {
		return nil
	}
	var out []chart
	origin := points[0].At
	add := func(points []ledger.LagPoint, suffix string) {
		lag := newChart(origin, points, "Records behind"+suffix,
			func(p ledger.LagPoint) *float64 { return whole(p.LagRecords) }, func(v float64) string {
				return render.Count(int64(v))
			})
		rate := newChart(origin, points, "Records read a second"+suffix,
			func(p ledger.LagPoint) *float64 { return p.RecordsPerSecond }, func(v float64) string {
				return strings.TrimSuffix(render.Rate(&v), "/s")
			})
		lag.flip(points, flip)
		out = append(out, lag)
		if rate.Line != "" && rate.Peak != "0" { // otherwise no speed was measured
			rate.flip(points, flip)
			out = append(out, rate)
		}
	}
	if n := beginning(points); n > 1 && len(points)-n > 0 {
		add(points[:n], ", until caught up")
		add(points[n-1:], ", since then")
		return out
	}
	add(points, "")
	return out
}

// beginning returns the number of points up to shortly after the deployment first caught up if these cover less than a
// quarter of the time, otherwise 0.
func beginning(points []ledger.LagPoint) int {
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

func newChart(origin time.Time, points []ledger.LagPoint, title string, value func(ledger.LagPoint) *float64,
	words func(float64) string,
) chart {
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
		c.Marks = append(c.Marks, tick{
			float64(chartWidth * i / 4), "+" + render.Duration(start.Sub(origin)+span*time.Duration(i)/4),
		})
	}
	return c
}

// flip adds the mark of the flip if it falls into the time of the points or shortly after.
func (c *chart) flip(points []ledger.LagPoint, at *time.Time) {
	start, end := points[0].At, points[len(points)-1].At
	span := end.Sub(start)
	if at == nil || at.Before(start) || at.Sub(end) > span/5 {
		return
	}
	x := min(chartWidth, tenth(float64(at.Sub(start))/float64(max(1, span))*chartWidth))
	c.Flip = &flipMark{At: x, Late: x > chartWidth-nameRoom}
}

// trace draws the line and fills the area below it.
func (c *chart) trace(points []ledger.LagPoint, value func(ledger.LagPoint) *float64, x func(time.Time) float64,
	y func(float64) float64,
) {
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

// bands adds the phases behind the curve.
func (c *chart) bands(points []ledger.LagPoint, x func(time.Time) float64) {
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

// nice returns the next number above v of the form 1, 2, 4 or 8 times a power of ten, whose quarters are round numbers.
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
