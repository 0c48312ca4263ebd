package tui

import (
	"fmt"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/status"
)

// checksPart shows the last results of the checks: one a line, or all on one line when there is no room.
func (m *Model) checksPart(r room, v status.Version, width int) []string {
	checks := m.detail.Facts[v.Version].Checks
	t := m.theme
	switch {
	case r.checks == 0 || len(checks) == 0 && r.checks < 3:
		return nil
	case len(checks) == 0:
		return []string{t.label("checks") + t.paint(dim, "the job has none")}
	case r.checks == 1 || len(checks) > r.checks:
		return []string{t.label("checks") + t.clip(m.checksLine(checks), width-margin)}
	}
	nameWidth := 0
	for _, c := range checks {
		nameWidth = min(30, max(nameWidth, cells(clean(c.Name))))
	}
	var out []string
	for i, c := range checks {
		label := ""
		if i == 0 {
			label = "checks"
		}
		sign, as, text := t.checkLook(c)
		if c.Stage == job.CheckAfter {
			text += " after the flip"
		}
		if c.At != nil {
			text += " at " + since(m.now, *c.At)
		}
		if c.Detail != "" {
			text += ": " + clean(c.Detail)
		}
		line := t.label(label) + t.paint(as, sign+" "+t.fit(clean(c.Name), nameWidth, false)) + "  " +
			t.paint(dim, t.fit(c.When, 6, false)) + "  "
		out = append(out, t.clip(line+t.paint(as, text), width))
	}
	return out
}

func (m *Model) checksLine(checks []Check) string {
	t := m.theme
	counts := map[string]int{}
	var parts []string
	for _, c := range checks {
		counts[c.Outcome]++
		sign, as, _ := t.checkLook(c)
		parts = append(parts, t.paint(as, sign+" "+clean(c.Name)))
	}
	return t.paint(dim, fmt.Sprintf("%d of %d passed  ", counts["pass"], len(checks))) + strings.Join(parts, "  ")
}

func (t theme) checkLook(c Check) (sign string, as tone, text string) {
	switch c.Outcome {
	case "pass":
		return t.good, live, "passed"
	case "fail":
		return t.bad, bad, "failed"
	case "":
		return t.none, dim, "has not run"
	}
	return t.warn, warn, c.Outcome
}
