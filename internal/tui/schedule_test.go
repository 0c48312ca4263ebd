package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/batchlayer/schedule"
	"github.com/kappactl/kappactl/internal/job"
)

func TestTheHeaderOfAJobShowsItsSchedule(t *testing.T) {
	next := noon().Add(3*time.Hour + 20*time.Second)
	for want, s := range map[string]*schedule.Status{
		"next batch run in 3h":              {State: schedule.Active, NextAt: &next},
		"batch late, next batch run in 3h":  {State: schedule.Late, NextAt: &next},
		"schedule paused":                   {State: schedule.Paused},
		"no batch runs: live is not lambda": {State: schedule.NotLambda},
		"schedule not seen by an agent yet": {State: schedule.Starting},
		"public.pageviews_hourly":           nil,
	} {
		m := opened(t, Options{Job: "pageviews"}, 160, 40)
		d := detail(liveVersion(2))
		d.Schedule = s
		m.answer(looked{detail: &d})
		header, _, _ := strings.Cut(m.View(), "\n")
		if !strings.Contains(header, want) || s == nil && strings.Contains(header, "batch") {
			t.Errorf("%q\nwant %q", header, want)
		}
	}
	m := opened(t, Options{Job: "pageviews"}, 60, 40) // no room
	d := detail(liveVersion(2))
	d.Schedule = &schedule.Status{Job: job.Name("pageviews"), State: schedule.Paused}
	m.answer(looked{detail: &d})
	if header, _, _ := strings.Cut(m.View(), "\n"); strings.Contains(header, "schedule") {
		t.Errorf("%q does not fit", header)
	}
}
