package tui

import (
	"fmt"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/status"
)

// TestAJobOfTwoHundredVersions (C03): the two that matter stay in sight, at every size.
func TestAJobOfTwoHundredVersions(t *testing.T) {
	versions := []status.Version{catchingUpVersion(12), liveVersion(12)}
	versions[0].Version, versions[1].Version = "v200", "v199"
	for n := 198; n > 0; n-- {
		phase := job.Retired
		if n%7 == 0 {
			phase = job.Aborted
		}
		v := version(fmt.Sprintf("v%d", n), phase, "", "")
		v.EndedAt = ptr(noon())
		versions = append(versions, v)
	}
	d := detail(versions...)
	d.Deployment.Number, d.Status.Deployments[0].Version = 200, "v200"
	o := Overview{Agents: 1, Jobs: []status.Job{d.Status}}
	page, list := opened(t, Options{Job: "pageviews"}, 100, 30), opened(t, Options{}, 100, 30)
	page.answer(looked{detail: &d})
	list.answer(looked{overview: &o})
	for _, m := range []*Model{page, list} {
		shows(t, m, "v200", "v199")
		before := strings.Join(m.frame(), "\n")
		for _, size := range [][2]int{{0, 0}, {1, 1}, {20, 5}, {73, 24}, {75, 24}, {74, 24}, {300, 100}} {
			m.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
			fits(t, m.frame(), size[0], size[1])
		}
		m.pressAll("G", "g", "l", "h")
		m.Update(tea.WindowSizeMsg{Width: 100, Height: 30})
		if diff := cmp.Diff(before, strings.Join(m.frame(), "\n")); diff != "" {
			t.Errorf("it is not as before (-before +after):\n%s", diff)
		}
	}
}
