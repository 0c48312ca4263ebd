package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/kappactl/kappactl/abtest"
	"github.com/kappactl/kappactl/internal/render"
)

// printFindings writes what an experiment has found out: rewards, guardrails and the next decision.
func printFindings(w io.Writer, style render.Style, c abtest.Comparison) error {
	var lines []string
	if c.Rewards != nil {
		t := render.NewTable("arm", ">counted", ">mean", ">difference", "interval", ">P(best)", ">expected loss")
		for _, a := range c.Estimates.Arms {
			interval := ""
			if a.Lo != nil && a.Hi != nil {
				interval = figure(*a.Lo) + " to " + figure(*a.Hi)
			}
			t.Add(render.Text(a.Version), render.Text(render.Count(int64(a.Subjects))), render.Text(figure(a.Mean)),
				render.Text(optional(a.Difference, figure)),
				render.Text(interval), render.Text(optional(a.Best, percent)), render.Text(optional(a.Loss, figure)))
		}
		if err := t.Write(w, style); err != nil {
			return err
		}
		lines = append(lines, rewardLine(*c.Rewards))
		if c.Estimates.Approximate {
			lines = append(lines, "the weights have changed: the interval is approximate")
		}
	}
	for _, g := range c.Guards {
		state := render.Or(g.State)
		if g.Breached {
			state = "breached"
		}
		if g.Reason != "" {
			state += ": " + g.Reason
		}
		lines = append(lines, fmt.Sprintf("guardrail %s (%s): %s", g.Name, g.Action, state))
	}
	if c.Next != "" {
		lines = append(lines, fmt.Sprintf("next: %s: %s", c.Next, c.NextReason))
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

func rewardLine(r abtest.RewardStatus) string {
	var counts []string
	for _, code := range slices.Sorted(maps.Keys(r.Counts)) {
		counts = append(counts, fmt.Sprintf("%s %s", code, render.Count(r.Counts[code])))
	}
	text := "rewards from " + r.Source + ": " + render.Or(strings.Join(counts, ", "))
	if r.Watermark != nil {
		text += ", read up to " + render.Time(r.Watermark)
	}
	if r.Trouble != "" {
		text += "; " + r.Trouble
	}
	return text
}

// optional is a number that may be missing.
func optional(v *float64, write func(float64) string) string {
	if v == nil {
		return ""
	}
	return write(*v)
}
