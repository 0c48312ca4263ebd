package schedule_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kappactl/kappactl/batchlayer/schedule"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

// world is a lambda job with a schedule, agents, and a clock of the test.
type world struct {
	t      *testing.T
	pool   *pg.Pool
	now    time.Time
	agents []*schedule.Scheduler
}

func newWorld(t *testing.T, batch string, since time.Time) *world {
	t.Helper()
	w := &world{t: t, now: since}
	w.pool, _ = pgtest.New(t)
	w.sql(`INSERT INTO kappactl.job (name, view_schema, view_name, live) VALUES ('o', 'public', 'o', 1)`)
	w.sql(`INSERT INTO kappactl.version (job, number, hash, spec, layout, dialect, engine, phase) VALUES ('o', 1, 'h', '{}', '{}', 1, 'sql', 'live')`)
	w.deploy("lambda", batch)
	w.agents = []*schedule.Scheduler{w.agent(), w.agent()}
	w.look()
	return w
}

func (w *world) agent() *schedule.Scheduler {
	return schedule.New(schedule.Deps{
		Pool: w.pool, Log: slog.New(slog.NewTextHandler(w.t.Output(), nil)),
		Clock: func(context.Context, pg.DB) (time.Time, error) { return w.now, nil },
	}, schedule.Config{Follow: time.Nanosecond})
}

// deploy puts the batch block of a job file in force in place.
func (w *world) deploy(mode, batch string) {
	w.t.Helper()
	spec, err := job.Parse("job.yaml", []byte("job: o\nsource: {topics: [a], columns: {url: text}}\nquery: SELECT url, count(*) AS n FROM source GROUP BY url\n"+
		"serve: {view: public.o}\nbatch: "+batch+"\n"))
	if err != nil {
		w.t.Fatal(err)
	}
	spec.Mode = job.Mode(mode)
	text, err := json.Marshal(spec)
	if err != nil {
		w.t.Fatal(err)
	}
	w.sql(fmt.Sprintf(`UPDATE kappactl.version SET spec = '%s'`, text))
}

func (w *world) sql(text string) {
	w.t.Helper()
	if _, err := w.pool.Exec(w.t.Context(), text); err != nil {
		w.t.Fatalf("%s: %v", text, err)
	}
}

// look is a look of both agents at once.
func (w *world) look() {
	w.t.Helper()
	errs := make([]error, len(w.agents))
	var g sync.WaitGroup
	for i, a := range w.agents {
		g.Go(func() { errs[i] = a.Look(w.t.Context()) })
	}
	g.Wait()
	for _, err := range errs {
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) at(clock string) *world {
	w.t.Helper()
	now, err := time.Parse("2006-01-02 15:04", "2026-03-"+clock)
	if err != nil {
		w.t.Fatal(err)
	}
	w.now = now
	w.look()
	return w
}

// ends is the end of the run under way.
func (w *world) ends(code int) {
	w.t.Helper()
	w.sql(fmt.Sprintf(`UPDATE kappactl.request SET answered_at = clock_timestamp(), exit_code = %d, answer = '{"code": "build_failed"}' WHERE answered_at IS NULL`, code))
	w.look()
}

// lines are the results of a query with one column of text.
func (w *world) lines(query string) []string {
	w.t.Helper()
	rows, err := pg.Structs[struct{ Line string }](w.t.Context(), w.pool, query, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = r.Line
	}
	return out
}

func (w *world) expect(query string, want ...string) {
	w.t.Helper()
	if got := w.lines(query); !slices.Equal(got, want) {
		w.t.Errorf("got %s\nwant %s", strings.Join(got, " | "), strings.Join(want, " | "))
	}
}

const (
	ticks = `SELECT concat_ws(' ', to_char(scheduled_for AT TIME ZONE 'UTC', 'DD HH24:MI'), state, request, nullif(together, 1)) AS line
		FROM kappactl.tick ORDER BY scheduled_for`
	requests = `SELECT concat_ws(' ', id, verb, job, number, to_char((args ->> 'tick')::timestamptz AT TIME ZONE 'UTC', 'DD HH24:MI'), by) AS line
		FROM kappactl.request ORDER BY id`
	events = `SELECT kind AS line FROM kappactl.event ORDER BY id`
	nextAt = `SELECT to_char(next_at AT TIME ZONE 'UTC', 'DD HH24:MI') AS line FROM kappactl.schedule`
)

var since = time.Date(2026, 3, 1, 0, 30, 0, 0, time.UTC)

func TestTwoAgentsBeginOneRunForATick(t *testing.T) {
	w := newWorld(t, `{schedule: "0 * * * *"}`, since)
	w.expect(nextAt, "01 01:00")
	for range 5 {
		w.at("01 01:00")
	}
	w.expect(ticks, "01 01:00 started 1")
	w.expect(requests, "1 batch_run o 1 01 01:00 schedule")
	w.expect(nextAt, "01 02:00")
	w.at("01 02:00") // the first still runs
	w.expect(ticks, "01 01:00 started 1", "01 02:00 skipped 1")
	w.ends(0)
	w.at("01 03:00")
	w.expect(ticks, "01 01:00 started 1", "01 02:00 skipped 1", "01 03:00 started 2")
	w.expect(events, "batch_late")
}

func TestWhatIsMissedIsWrittenDown(t *testing.T) {
	w := newWorld(t, `{schedule: "0 * * * *"}`, since)
	w.at("01 05:20")
	w.expect(ticks, "01 01:00 missed 4", "01 05:00 started 1")
	w.expect(events, "schedule_missed", "batch_late")
}

func TestOneRunWaitsForTheOneUnderWay(t *testing.T) {
	w := newWorld(t, `{schedule: "0 * * * *", overlap: queue_one}`, since)
	for _, clock := range []string{"01 01:00", "01 02:00", "01 03:00"} {
		w.at(clock)
	}
	w.expect(ticks, "01 01:00 started 1", "01 02:00 waiting", "01 03:00 skipped 1")
	w.ends(0)
	w.expect(ticks, "01 01:00 started 1", "01 02:00 started 2", "01 03:00 skipped 1")
}

func TestARunThatAPersonBeganIsUnderWay(t *testing.T) {
	w := newWorld(t, `{schedule: "0 * * * *"}`, since)
	w.sql(`INSERT INTO kappactl.request (job, number, verb) VALUES ('o', 1, 'batch_run')`)
	w.at("01 01:00")
	w.expect(ticks, "01 01:00 skipped 1")
}

func TestRunsThatWereMissedFollowOneAnother(t *testing.T) {
	w := newWorld(t, `{schedule: "0 2 * * *", missed: all}`, since)
	w.at("03 09:00")
	w.expect(ticks, "01 02:00 started 1", "02 02:00 waiting", "03 02:00 waiting")
	w.ends(0)
	w.ends(0)
	w.expect(ticks, "01 02:00 started 1", "02 02:00 started 2", "03 02:00 started 3")
	w.ends(0)
	w.expect(requests, "1 batch_run o 1 01 02:00 schedule", "2 batch_run o 1 02 02:00 schedule", "3 batch_run o 1 03 02:00 schedule")
}

// An agent that read the schedule before another one began a run of it begins none beside it.
func TestRunsDoNotOverlapHoweverManyAgentsLook(t *testing.T) {
	w := newWorld(t, `{schedule: "0 2 * * *", missed: all}`, since)
	for range 4 {
		w.agents = append(w.agents, w.agent())
	}
	w.at("10 09:00")
	for n := 1; n <= 10; n++ {
		for range 3 {
			w.look()
		}
		w.expect(`SELECT count(*) || ' ' || count(*) FILTER (WHERE answered_at IS NULL) AS line FROM kappactl.request`, fmt.Sprintf("%d 1", n))
		w.sql(`UPDATE kappactl.request SET answered_at = clock_timestamp(), exit_code = 0 WHERE answered_at IS NULL`)
	}
}

func TestTicksThatAreLongPastAreDeleted(t *testing.T) {
	w := newWorld(t, `{schedule: "0 2 * * *"}`, since)
	w.sql(`INSERT INTO kappactl.tick (job, scheduled_for, state) VALUES ('o', '2025-11-20 02:00Z', 'started'), ('o', '2025-12-20 02:00Z', 'started')`)
	w.at("01 02:00")
	w.expect(`SELECT to_char(scheduled_for AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS line FROM kappactl.tick ORDER BY 1`, "2025-12-20", "2026-03-01")
}

func TestAChangedScheduleCountsFromNow(t *testing.T) {
	w := newWorld(t, `{schedule: "0 2 * * *"}`, since)
	w.deploy("lambda", `{schedule: "0 6 * * *"}`)
	w.at("01 12:00") // 02:00 and 06:00 have passed without an agent
	w.expect(ticks)
	w.expect(nextAt, "02 06:00")
	w.deploy("lambda", `{schedule: "0 6 * * *", overlap: queue_one}`) // its moments stay
	w.at("02 06:00")
	w.expect(ticks, "02 06:00 started 1")
	w.deploy("lambda", `{schedule: "0 6 * * *", zone: Asia/Tokyo}`)
	w.at("02 12:00")
	w.expect(nextAt, "02 21:00")
}

func TestAClockThatStepsBackBeginsNothingTwice(t *testing.T) {
	w := newWorld(t, `{schedule: "0 * * * *"}`, since)
	for _, clock := range []string{"01 01:00", "01 02:00", "01 00:55", "01 01:00", "01 02:00"} {
		w.at(clock)
		w.ends(0)
	}
	w.expect(ticks, "01 01:00 started 1", "01 02:00 started 2")
}

func TestWhilePausedNothingIsMissed(t *testing.T) {
	w := newWorld(t, `{schedule: "0 * * * *", overlap: queue_one}`, since)
	w.at("01 01:00").at("01 02:00")
	w.change(func(tx *pg.Tx) error {
		paused, err := schedule.Store{}.PauseFor(t.Context(), tx, "o", "ann")
		if !paused {
			t.Error("not paused")
		}
		return err
	})
	w.at("01 09:00")
	w.ends(0)
	w.expect(ticks, "01 01:00 started 1", "01 02:00 skipped")
	w.change(func(tx *pg.Tx) error {
		if paused, err := (schedule.Store{}).PauseFor(t.Context(), tx, "o", "ann"); paused || err != nil {
			t.Errorf("paused twice: %t, %v", paused, err)
		}
		next, ok, err := schedule.Store{}.Resume(t.Context(), tx, "o", "ann") // by the database's clock, long after 2026-03
		if !ok || next.Minute() != 0 || time.Until(next) > time.Hour || time.Until(next) <= 0 {
			t.Errorf("resumed: %t, next %s", ok, next)
		}
		return err
	})
	w.at("01 10:00")
	w.expect(ticks, "01 01:00 started 1", "01 02:00 skipped")
	w.expect(events, "batch_late", "schedule_paused", "schedule_resumed")
}

func (w *world) change(f func(*pg.Tx) error) {
	w.t.Helper()
	if err := w.pool.ReadCommitted(w.t.Context(), f); err != nil {
		w.t.Fatal(err)
	}
}

func TestAJobWithoutALiveVersionOfModeLambdaHasNoRuns(t *testing.T) {
	w := newWorld(t, `{schedule: "0 * * * *"}`, since)
	w.deploy("kappa", `{schedule: "0 * * * *"}`)
	w.at("01 01:00")
	w.expect(ticks)
	w.expect(nextAt)
	found, err := schedule.Store{}.Statuses(t.Context(), w.pool, "")
	if err != nil || len(found) != 1 || found[0].State != schedule.NotLambda || found[0].NextAt != nil {
		t.Fatalf("%+v (%v)", found, err)
	}
	w.sql(`UPDATE kappactl.job SET live = NULL`)
	w.deploy("lambda", `{schedule: "0 * * * *"}`)
	if found, err = (schedule.Store{}).Statuses(t.Context(), w.pool, ""); err != nil || len(found) != 1 || found[0].State != schedule.NotLambda {
		t.Errorf("a candidate: %+v (%v)", found, err)
	}
	w.sql(`UPDATE kappactl.job SET live = 1`)
	w.at("01 02:30")
	w.expect(nextAt, "01 03:00")
}

func TestAJobIsLateUntilAGenerationIsLive(t *testing.T) {
	w := newWorld(t, `{schedule: "0 * * * *"}`, since)
	w.at("01 01:00").at("01 02:00")
	w.expect(events, "batch_late") // none since 00:30
	w.sql(`INSERT INTO kappactl.generation (job, number, generation, state, cut_at) VALUES ('o', 1, 1, 'live', '2026-03-01 01:00:01Z')`)
	w.ends(0)
	found, err := schedule.Store{}.Statuses(t.Context(), w.pool, "o")
	if err != nil || len(found) != 1 || found[0].State != schedule.Active {
		t.Fatalf("%+v (%v)", found, err)
	}
	w.at("01 02:59")
	w.expect(events, "batch_late")
	w.at("01 03:00")
	w.expect(events, "batch_late", "batch_late")
	if found, err = (schedule.Store{}).Statuses(t.Context(), w.pool, "o"); err != nil || found[0].State != schedule.Late {
		t.Errorf("%+v (%v)", found, err)
	}
}

func TestAFailedRunIsInTheHistoryOnce(t *testing.T) {
	w := newWorld(t, `{schedule: "@every 6h"}`, since)
	w.at("01 06:30")
	w.ends(7)
	w.look()
	w.expect(events, "schedule_failed")
	found, err := schedule.Store{}.Statuses(t.Context(), w.pool, "o")
	if err != nil || found[0].Last == nil || *found[0].Last.ExitCode != 7 || found[0].Last.MessageCode != "build_failed" {
		t.Fatalf("%+v (%v)", found, err)
	}
	w.at("01 12:30") // late, too
	w.sql(`UPDATE kappactl.request SET answered_at = clock_timestamp(), exit_code = 6, answer = '{"code": "batch_under_way"}' WHERE answered_at IS NULL`)
	w.look()
	w.expect(events, "schedule_failed", "batch_late") // another run does the same
	w.at("01 18:30")
	w.sql(`INSERT INTO kappactl.event (job, number, kind) VALUES ('o', 1, 'batch_failed')`)
	w.ends(5)
	w.expect(events, "schedule_failed", "batch_late", "batch_failed")
}
