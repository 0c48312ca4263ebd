package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/kappactl/kappactl/batchlayer/schedule"
	"github.com/kappactl/kappactl/internal/httpapi"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/render"
)

// scheduleOf is the schedule of a job, nil when it has none.
func scheduleOf(ctx context.Context, db pg.DB, name job.Name) (*schedule.Status, error) {
	found, err := schedule.Store{}.Statuses(ctx, db, name)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// scheduleLines are a line about the schedule of a job, and one more when something is wrong.
func scheduleLines(w io.Writer, style render.Style, s *schedule.Status) error {
	if s == nil {
		return nil
	}
	text := fmt.Sprintf("\nschedule: %s (%s), %s", s.Expression, s.Zone, s.State)
	if s.NextAt != nil {
		text += ", next run at " + render.Time(s.NextAt)
	}
	if s.Last != nil {
		text += fmt.Sprintf(", last run at %s: %s", render.Time(&s.Last.ScheduledFor), resultOf(*s))
	}
	text += "\n"
	if warning := scheduleWarning(*s); warning != "" {
		text += style.Paint(render.Warn, "warning: ") + warning + "\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

// scheduleWarning returns what is wrong with a schedule, and the next command; both are empty if nothing is.
func scheduleWarning(s schedule.Status) string {
	switch s.State {
	case schedule.Late:
		return fmt.Sprintf("since %s two batch runs were due and readers see the results of neither; next: kappactl history %s",
			render.Time(s.LateSince), s.Job)
	case schedule.Paused:
		return fmt.Sprintf("no batch run begins by itself; next: kappactl schedule resume %s", s.Job)
	case schedule.NotLambda:
		return "no batch run begins: the live version is not one of mode lambda"
	case schedule.Active, schedule.Starting:
	}
	return ""
}

// scheduledFor returns the metrics of schedules.
func scheduledFor(ctx context.Context, db pg.DB, now time.Time) ([]httpapi.Scheduled, error) {
	found, err := schedule.Store{}.Statuses(ctx, db, "")
	out := make([]httpapi.Scheduled, len(found))
	for i, s := range found {
		m := httpapi.Scheduled{Job: string(s.Job), State: string(s.State)}
		if s.NextAt != nil {
			m.NextIn = new(s.NextAt.Sub(now).Seconds())
		}
		if s.Last != nil {
			m.LastAge = new(now.Sub(s.Last.ScheduledFor).Seconds())
			if s.Last.ExitCode != nil {
				m.LastFailed = new(*s.Last.ExitCode != job.ExitOK)
			}
		}
		out[i] = m
	}
	return out, err
}
