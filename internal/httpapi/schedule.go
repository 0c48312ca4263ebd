package httpapi

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
)

// Scheduled is the schedule of one job. nil values are unknown, or do not apply, and are not exported.
type Scheduled struct {
	Job        string
	State      string
	NextIn     *float64 // seconds until the next run is due; negative: it is overdue
	LastAge    *float64 // seconds since the last run was due
	LastFailed *bool    // nil while it is under way
}

func ofSchedule(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("kappactl_schedule_"+name, help, append([]string{"job"}, labels...), nil)
}

// schedules exports the metrics of schedules.
func (c collector) schedules(ctx context.Context, out chan<- prometheus.Metric) {
	if c.s.deps.Scheduled == nil {
		return
	}
	found, err := c.s.deps.Scheduled(ctx)
	if err != nil {
		return // database_up reports it
	}
	for _, s := range found {
		gauge := func(d *prometheus.Desc, value float64, labels ...string) {
			out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{s.Job}, labels...)...)
		}
		gauge(ofSchedule("state", "1 for the current state of a job's schedule.", "state"), 1, s.State)
		if s.NextIn != nil {
			gauge(ofSchedule("next_run_seconds", "Time until the next batch run is due; negative when it is overdue."),
				*s.NextIn)
		}
		if s.LastAge != nil {
			gauge(ofSchedule("last_run_age_seconds", "Time since the last batch run was due."), *s.LastAge)
		}
		if s.LastFailed != nil {
			failed := 0.0
			if *s.LastFailed {
				failed = 1
			}
			gauge(ofSchedule("last_run_failed", "1 when the last batch run of the schedule failed."), failed)
		}
	}
}
