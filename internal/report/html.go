package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"time"

	"github.com/kappactl/kappactl/batchlayer/generation"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
)

//go:embed page.html
var pageText string

// page is the data of the HTML template.
type page struct {
	Report
	Tone        string // "good", "warn" or "bad"
	Took        string // from stage to flip or end; empty before either
	Charts      []chart
	Steps       []step
	Differences []difference
	Lines       []changedLine // differences of the job file
}

// step is one step of a version's life with its duration.
type step struct {
	Name    string
	Seconds float64
	Text    string
	Share   float64 // percentage of the longest step
}

// HTML writes a report as one page without scripts or external resources. It follows the reader's light or dark mode.
func HTML(w io.Writer, r Report) error {
	t, err := template.New("page").Funcs(template.FuncMap{
		"count": render.Count, "time": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") },
		"seconds": func(s float64) string { return render.Seconds(&s) }, "bytes": render.Bytes,
		"percent":   func(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) },
		"stateTone": stateTone,
		"tone":      toneOf,
		"share":     func(v float64) string { return fmt.Sprintf("%.3g%%", v) },
	}).Parse(pageText)
	if err != nil {
		return fmt.Errorf("report page: %w", err)
	}
	p := page{
		Report: r, Tone: r.tone(), Took: r.took(), Charts: charts(r.Lag, r.PromotedAt), Steps: r.steps(),
		Differences: differences(r.Checks),
	}
	if r.PreviousFile != "" {
		p.Lines = compareLines(r.PreviousFile, r.File)
	}
	if err := t.Execute(w, p); err != nil {
		return fmt.Errorf("report page: %w", err)
	}
	return nil
}

func (r Report) tone() string {
	switch {
	case r.State == job.RolledBack || r.State == job.DeployFailed || r.State == job.DeployAborted || r.ExitCode != nil:
		return "bad"
	case r.State == job.RollingOut || r.State == job.Waiting:
		return "warn"
	}
	return "good"
}

func (r Report) took() string {
	switch {
	case r.PromotedAt != nil:
		return render.Duration(r.PromotedAt.Sub(r.CreatedAt)) + " until promoted"
	case r.EndedAt != nil:
		return render.Duration(r.EndedAt.Sub(r.CreatedAt)) + " until it ended"
	}
	return ""
}

func toneOf(outcome string) string {
	switch outcome {
	case "pass":
		return "good"
	case "fail":
		return "bad"
	}
	return "warn"
}

// stateTone is that of a generation in a state.
func stateTone(s generation.State) string {
	switch s {
	case generation.Live:
		return "good"
	case generation.Failed:
		return "bad"
	case generation.Building:
		return "warn"
	case generation.Kept, generation.Retired:
	}
	return "dim"
}

func (r Report) steps() []step {
	t := r.Timings
	var out []step
	longest := 0.0
	for _, s := range []struct {
		name    string
		seconds *float64
	}{
		{"start", t.Start},
		{"replay", t.Replay},
		{"build", t.Build},
		{"index", t.Index},
		{"analyze", t.Analyze},
		{"catch up", t.CatchUp},
		{"flip", t.Flip},
	} {
		if s.seconds != nil {
			out = append(out, step{Name: s.name, Seconds: *s.seconds, Text: render.Seconds(s.seconds)})
			longest = max(longest, *s.seconds)
		}
	}
	for i := range out {
		out[i].Share = tenth(100 * out[i].Seconds / max(longest, 1e-9))
	}
	return out
}
