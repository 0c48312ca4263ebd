package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/batchlayer/schedule"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/render"
)

// scheduled is a database with the live lambda job pageviews, whose schedule an agent has seen.
func scheduled(t *testing.T) (pool *pg.Pool, run func(args ...string) (job.ExitCode, string, string)) {
	t.Helper()
	pool, dsn := staged(t)
	change(t, pool, `UPDATE kappactl.version SET phase = 'live', spec = spec || '{"mode": "lambda", "batch": {"schedule": "30 2 * * *",
		"zone": "Europe/Berlin", "missed": "run_once", "overlap": "skip", "missed_after": 600000000000}}'`)
	change(t, pool, `UPDATE kappactl.job SET live = 1`)
	return pool, func(args ...string) (job.ExitCode, string, string) { return runCLI(t, append(args, "--dsn", dsn)...) }
}

func looked(t *testing.T, pool *pg.Pool) {
	t.Helper()
	if err := schedule.New(schedule.Deps{Pool: pool}, schedule.Config{}).Look(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestScheduleCommandsFollowOneSchedule(t *testing.T) {
	t.Parallel()
	pool, run := scheduled(t)
	ok := func(want string, args ...string) string {
		t.Helper()
		code, out, errs := run(args...)
		if code != 0 || !strings.Contains(out+errs, want) {
			t.Fatalf("%v: exit %d\n%s%s\nwant %s", args, code, out, errs, want)
		}
		return out
	}
	refused := func(want job.ExitCode, args ...string) {
		t.Helper()
		if code, out, errs := run(args...); code != want || !strings.Contains(errs, "next: ") {
			t.Fatalf("%v: exit %d, not %d\n%s%s", args, code, want, out, errs)
		}
	}
	ok("starting", "schedule", "list")
	refused(job.ExitConflict, "schedule", "pause", "pageviews")
	looked(t, pool)
	ok("active", "schedule", "list", "pageviews")
	refused(job.ExitUsage, "schedule", "list", "pageview")
	var moments []scheduleMoment
	if err := json.Unmarshal([]byte(ok("", "schedule", "next", "-n", "3", "-o", "json")), &moments); err != nil || len(moments) != 3 {
		t.Fatalf("%v (%v)", moments, err)
	}
	for _, m := range moments {
		if local, err := time.Parse(time.RFC3339, m.Local); err != nil || !strings.Contains(m.Local, "T02:30:00") && !strings.Contains(m.Local, "T03:00:00") ||
			!local.Equal(m.At) {
			t.Errorf("%+v (%v)", m, err)
		}
	}
	ok("would do: the schedule of pageviews is paused", "schedule", "pause", "pageviews", "--dry-run")
	ok("active", "schedule", "list")
	ok("the schedule of pageviews is paused; next: kappactl schedule resume pageviews", "schedule", "pause", "pageviews")
	ok("is paused already", "schedule", "pause", "pageviews")
	ok("paused", "schedule", "list")
	ok("paused; next: kappactl schedule resume pageviews", "schedule", "next")
	ok("request 1", "schedule", "run-now", "pageviews") // a paused schedule, too
	refused(job.ExitConflict, "schedule", "run-now", "pageviews")
	ok("goes on; the next run is due at "+moments[0].At.Format(time.RFC3339), "schedule", "resume", "pageviews")
	ok("is not paused", "schedule", "resume", "pageviews")
	ok(`"state": "active"`, "status", "pageviews", "-o", "json")
	change(t, pool, `INSERT INTO kappactl.tick (job, scheduled_for, state, request) VALUES ('pageviews', '2026-01-01 01:30Z', 'started', 1)`)
	change(t, pool, `UPDATE kappactl.request SET answered_at = now(), exit_code = 5, answer = '{"code": "build_failed"}'`)
	change(t, pool, `UPDATE kappactl.schedule SET late_since = '2026-01-03 01:30Z'`)
	ok("failed (5): ", "schedule", "list")
	ok(`"exit_code": 5`, "status", "pageviews", "-o", "json")
	metrics, err := scheduledFor(t.Context(), pool, moments[0].At.Add(-time.Minute))
	if err != nil || len(metrics) != 1 || metrics[0].State != "late" || *metrics[0].NextIn != 60 || !*metrics[0].LastFailed {
		t.Errorf("%+v (%v)", metrics, err)
	}
	ok("schedule_paused", "history", "pageviews", "-o", "csv")
	change(t, pool, `UPDATE kappactl.version SET spec = spec || '{"mode": "kappa"}'`)
	ok("no_lambda", "schedule", "list")
	refused(job.ExitConflict, "schedule", "run-now", "pageviews")
}

func TestStatusShowsTheScheduleAndWhatIsWrongWithIt(t *testing.T) {
	next, tick := time.Date(2026, 3, 2, 2, 0, 0, 0, time.UTC), time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
	s := schedule.Status{Job: "pageviews", State: schedule.Active, Expression: "0 2 * * *", Zone: "UTC", NextAt: &next}
	for want, change := range map[string]func(*schedule.Status){
		"\nschedule: 0 2 * * * (UTC), active, next run at 2026-03-02T02:00:00Z\n": func(*schedule.Status) {},
		"last run at 2026-03-01T02:00:00Z: missed, 3 in all\n": func(s *schedule.Status) {
			s.Last = &schedule.Run{ScheduledFor: tick, State: schedule.Missed, Together: 3}
		},
		"last run at 2026-03-01T02:00:00Z: running\n": func(s *schedule.Status) { s.Last = &schedule.Run{ScheduledFor: tick, State: schedule.Started} },
		"warning: since 2026-03-01T02:00:00Z two batch runs were due": func(s *schedule.Status) {
			s.State, s.LateSince = schedule.Late, &tick
		},
		"warning: no batch run begins by itself; next: kappactl schedule resume pageviews\n": func(s *schedule.Status) {
			s.State, s.NextAt = schedule.Paused, nil
		},
		"warning: no batch run begins: the live version is not one of mode lambda\n": func(s *schedule.Status) { s.State, s.NextAt = schedule.NotLambda, nil },
	} {
		shown := s
		change(&shown)
		var b strings.Builder
		if err := scheduleLines(&b, render.Style{}, &shown); err != nil || !strings.Contains(b.String(), want) {
			t.Errorf("%q\nwant %q (%v)", b.String(), want, err)
		}
	}
}

func TestScheduleNextShowsAnExpressionWithoutAServer(t *testing.T) {
	t.Parallel()
	code, out, errs := runCLI(t, "schedule", "next", "--expression", "0 0 13 * 5", "-n", "2", "-o", "csv")
	if code != 0 || errs != "" || strings.Count(out, "T00:00:00Z") != 4 {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	for text, want := range map[string]string{
		"TZ=UTC": "character 1: a time zone in the expression", "0 30 2 * * *": "character 12: 6 fields, not five",
		"0 0 30 2 *": "character 5: no year has such a day", "": "the expression is empty", "@every 0s": "too often",
	} {
		code, out, errs := runCLI(t, "schedule", "next", "--expression", text)
		if code != job.ExitUsage || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%q: exit %d\n%s%s", text, code, out, errs)
		}
	}
	for _, line := range [][]string{
		{"-n", "0"}, {"pageviews", "--expression", "@daily"}, {"--zone", "UTC"}, {"--expression", "@daily", "--zone", "Mars/Olympus"}, {"pageviews/v1"},
	} {
		expectUsage(t, append([]string{"schedule", "next"}, line...))
	}
}
