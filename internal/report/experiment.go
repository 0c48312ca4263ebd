package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
	"time"

	"github.com/kappactl/kappactl/abtest"
	"github.com/kappactl/kappactl/abtest/judge"
	"github.com/kappactl/kappactl/internal/render"
)

//go:embed experiment.html
var experimentText string

// experimentPage is the data of the HTML template of an experiment.
type experimentPage struct {
	abtest.Course
	Tone  string // "good", "warn" or "dim"
	Plots []plot
}

// plot are curves over the time of a run, one for each arm. Lengths are in the units of its view box.
type plot struct {
	Title string
	About string
	Lines []plotLine
	Ticks []tick
	Marks []tick
}

type plotLine struct {
	Version string
	Class   string
	Path    string // SVG path data
	Last    string
}

// Experiment writes the course of an experiment as one page without scripts or external resources.
func Experiment(w io.Writer, c abtest.Course) error {
	t, err := template.New("experiment").Funcs(template.FuncMap{
		"count": render.Count, "time": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") },
		"percent": percentOf, "number": func(v float64) string { return fmt.Sprintf("%.4g", v) }, "guardTone": guardTone,
		"weights": func(ws []abtest.Weight) string {
			out := make([]string, len(ws))
			for i, w := range ws {
				out[i] = w.Version + " " + percentOf(w.Weight)
			}
			return strings.Join(out, ", ")
		},
		"estimate": func(c abtest.Course, arm int) judge.ArmEstimate {
			if c.Comparison == nil || c.Comparison.Rewards == nil || arm >= len(c.Comparison.Estimates.Arms) {
				return judge.ArmEstimate{}
			}
			return c.Comparison.Estimates.Arms[arm]
		},
		"known": func(v *float64) string {
			if v == nil {
				return "-"
			}
			return fmt.Sprintf("%.4g", *v)
		},
		"class": armClass, "lost": func(c abtest.Course) bool {
			return c.SampleRatio.Impossible || c.SampleRatio.Freedom > 0 && c.SampleRatio.P < 0.001
		},
	}).Parse(experimentText)
	if err != nil {
		return fmt.Errorf("report page: %w", err)
	}
	p := experimentPage{Course: c, Tone: runTone(c.State), Plots: []plot{weightsPlot(c)}}
	if means := meansPlot(c); len(means.Lines) > 0 {
		p.Plots = append(p.Plots, means)
	}
	if err := t.Execute(w, p); err != nil {
		return fmt.Errorf("report page: %w", err)
	}
	return nil
}

func percentOf(share float64) string { return fmt.Sprintf("%.3g%%", 100*share) }

func armClass(i int) string { return fmt.Sprintf("arm%d", i) }

func runTone(s abtest.State) string {
	switch s {
	case abtest.Running:
		return "good"
	case abtest.Paused:
		return "warn"
	case abtest.Ended:
	}
	return "dim"
}

func guardTone(g abtest.GuardStatus) string {
	switch {
	case g.Breached || g.State == "fail":
		return "bad"
	case g.State == "pass":
		return "good"
	case g.State == "":
		return "dim"
	}
	return "warn"
}

// plotPoints is how many moments a plot has.
const plotPoints = 181

func weightsPlot(c abtest.Course) plot {
	p := plot{Title: "Weights", About: "the share of subjects that read each arm"}
	p.draw(c, c.WeightsOver(plotPoints), 0, 1, percentOf)
	return p
}

// meansPlot has no lines before the window of a subject is over.
func meansPlot(c abtest.Course) plot {
	values := c.MeansOver(plotPoints)
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, arm := range values {
		for _, v := range arm {
			if !math.IsNaN(v) {
				lo, hi = min(lo, v), max(hi, v)
			}
		}
	}
	p := plot{Title: "Mean reward", About: "over the subjects exposed up to each time whose window is over"}
	if lo > hi {
		return p
	}
	if room := (hi - lo) / 10; room > 0 {
		lo, hi = lo-room, hi+room
	} else {
		lo, hi = lo-1, hi+1
	}
	p.draw(c, values, lo, hi, func(v float64) string { return fmt.Sprintf("%.3g", v) })
	return p
}

// draw adds a line for each arm and the axes. Gaps are where a value is not known.
func (p *plot) draw(c abtest.Course, values [][]float64, lo, hi float64, words func(float64) string) {
	y := func(v float64) float64 { return tenth(chartHeight - (v-lo)/(hi-lo)*chartHeight) }
	for i, arm := range values {
		var path strings.Builder
		command := "M"
		for k, v := range arm {
			if math.IsNaN(v) {
				command = "M"
				continue
			}
			fmt.Fprintf(&path, "%s%g %g", command, tenth(float64(k)/float64(len(arm)-1)*chartWidth), y(v))
			command = "L"
		}
		if path.Len() > 0 {
			p.Lines = append(p.Lines, plotLine{
				Version: c.Arms[i].Version, Class: armClass(i), Path: path.String(),
				Last: words(arm[len(arm)-1]),
			})
		}
	}
	span := c.End().Sub(c.StartedAt)
	for i := range 5 {
		v := lo + (hi-lo)*float64(i)/4
		p.Ticks = append(p.Ticks, tick{y(v), words(v)})
		p.Marks = append(p.Marks, tick{float64(chartWidth * i / 4), "+" + render.Duration(span*time.Duration(i)/4)})
	}
}
