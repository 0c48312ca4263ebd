package schedule

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// Store is the SQL on the tables schedule and tick.
type Store struct{}

// readClock is the database's clock.
func readClock(ctx context.Context, db pg.DB) (now time.Time, err error) {
	if err = db.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now); err != nil {
		return now, fmt.Errorf("read the database's clock: %w", err)
	}
	return now, nil
}

// idle reports whether there is no schedule, and no run of one whose end is still to be noted.
func idle(ctx context.Context, db pg.DB) (none bool, err error) {
	if err = db.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM kappactl.schedule)
		AND NOT EXISTS (SELECT FROM kappactl.tick WHERE state = 'waiting' OR state = 'started' AND noted_at IS NULL)`).Scan(&none); err != nil {
		return false, fmt.Errorf("look for schedules: %w", err)
	}
	return none, nil
}

// lambdaLive is SQL: the live versions of mode lambda with a schedule in their job file, as job, number and batch.
const lambdaLive = `SELECT j.name AS job, v.number, v.spec -> 'batch' AS batch
	FROM kappactl.job j JOIN kappactl.version v ON v.job = j.name AND v.number = j.live
	WHERE j.dropping_at IS NULL AND v.spec ->> 'mode' = 'lambda' AND coalesce(v.spec -> 'batch' ->> 'schedule', '') <> ''`

// wish is the schedule of a job file that is in force.
type wish struct {
	Job   job.Name
	Batch job.Batch
}

// wishes are the schedules that differ from what agents follow.
func wishes(ctx context.Context, db pg.DB) ([]wish, error) {
	type row struct{ Job, Batch string }
	rows, err := pg.Structs[row](ctx, db, `SELECT w.job, w.batch::text AS batch
		FROM (`+lambdaLive+`) w LEFT JOIN kappactl.schedule s ON s.job = w.job
		WHERE (s.expression, s.zone, s.missed, s.overlap, s.missed_after) IS DISTINCT FROM
			(w.batch ->> 'schedule', w.batch ->> 'zone', w.batch ->> 'missed', w.batch ->> 'overlap',
			 (w.batch ->> 'missed_after')::bigint / 1000 * interval '1 microsecond')
		ORDER BY w.job`, nil)
	if err != nil {
		return nil, fmt.Errorf("read the schedules of job files: %w", err)
	}
	out := make([]wish, len(rows))
	for i, r := range rows {
		out[i] = wish{Job: job.Name(r.Job)}
		if err := json.Unmarshal([]byte(r.Batch), &out[i].Batch); err != nil {
			return nil, fmt.Errorf("decode batch of job %s: %w", r.Job, err)
		}
	}
	return out, nil
}

// set makes a schedule be that of the job file. It counts from now on when its moments are others than before.
func set(ctx context.Context, db pg.DB, w wish, now, next time.Time) error {
	b := w.Batch
	_, err := db.Exec(ctx, `INSERT INTO kappactl.schedule AS s (job, expression, zone, missed, overlap, missed_after, since, next_at)
		VALUES (@job, @expression, @zone, @missed, @overlap, @missed_after::interval, @now, @next)
		ON CONFLICT (job) DO UPDATE SET expression = excluded.expression, zone = excluded.zone, missed = excluded.missed,
			overlap = excluded.overlap, missed_after = excluded.missed_after,
			since = CASE WHEN (s.expression, s.zone) = (excluded.expression, excluded.zone) THEN s.since ELSE excluded.since END,
			next_at = CASE WHEN (s.expression, s.zone) = (excluded.expression, excluded.zone) THEN s.next_at ELSE excluded.next_at END
		WHERE (s.expression, s.zone, s.missed, s.overlap, s.missed_after) IS DISTINCT FROM
			(excluded.expression, excluded.zone, excluded.missed, excluded.overlap, excluded.missed_after)`,
		pgx.NamedArgs{
			"job": string(w.Job), "expression": b.Schedule, "zone": b.Zone, "missed": string(b.Missed),
			"overlap":      string(b.Overlap),
			"missed_after": pg.Interval(b.MissedAfter), "now": now, "next": next,
		})
	if err != nil {
		return fmt.Errorf("set the schedule of %s: %w", w.Job, err)
	}
	return nil
}

// end takes away the schedules that no live version of mode lambda has, except for paused ones, which stay paused if it
// comes back.
func end(ctx context.Context, db pg.DB) error {
	_, err := db.Exec(ctx, `DELETE FROM kappactl.schedule s
		WHERE paused_at IS NULL AND NOT EXISTS (SELECT FROM (`+lambdaLive+`) w WHERE w.job = s.job)`)
	if err != nil {
		return fmt.Errorf("end schedules: %w", err)
	}
	return nil
}

// row is a schedule that is locked.
type row struct {
	Job         job.Name
	Number      job.Number // of the live version
	Expression  string
	Zone        string
	Missed      job.MissedPolicy
	Overlap     job.OverlapPolicy
	MissedAfter int64 // microseconds
	Since       time.Time
	NextAt      time.Time
	Late        bool
	Under       int64 // the request of the run under way, or asked for; 0: none
	Waiting     bool
	Cut         *time.Time // of the live generation
}

func (r row) policy() Policy {
	return Policy{Missed: r.Missed, Overlap: r.Overlap, MissedAfter: time.Duration(r.MissedAfter) * time.Microsecond}
}

// lock locks the schedules that are not paused and not locked by another agent, with their jobs, to which ticks refer:
// a transaction that has locked a job and then changes its schedule is not waited for.
func lock(ctx context.Context, tx *pg.Tx) ([]row, error) {
	rows, err := pg.Structs[row](ctx, tx, `SELECT s.job, w.number, s.expression, s.zone, s.missed, s.overlap,
			(extract(epoch FROM s.missed_after) * 1000000)::bigint AS missed_after, s.since, s.next_at,
			s.late_since IS NOT NULL AS late,
			coalesce((SELECT min(r.id) FROM kappactl.request r
				WHERE r.job = s.job AND r.verb = @verb AND r.answered_at IS NULL), 0) AS under,
			EXISTS (SELECT FROM kappactl.tick t WHERE t.job = s.job AND t.state = @waiting) AS waiting,
			(SELECT g.cut_at FROM kappactl.generation g WHERE g.job = s.job AND g.number = w.number AND g.state = 'live') AS cut
		FROM kappactl.schedule s JOIN (`+lambdaLive+`) w ON w.job = s.job
		WHERE s.paused_at IS NULL ORDER BY s.job FOR UPDATE OF s SKIP LOCKED FOR KEY SHARE OF w SKIP LOCKED`,
		pgx.NamedArgs{"verb": string(ledger.BatchRun), "waiting": string(Waiting)})
	if err != nil {
		return nil, fmt.Errorf("read schedules: %w", err)
	}
	return rows, nil
}

// add writes a tick, and deletes those that are long past; false: it is there already.
func add(ctx context.Context, tx *pg.Tx, name job.Name, t Tick, under int64) (bool, error) {
	tag, err := tx.Exec(ctx, `WITH past AS (
			DELETE FROM kappactl.tick
			WHERE job = @job AND scheduled_for < @at::timestamptz - interval '100 days' AND state <> 'waiting')
		INSERT INTO kappactl.tick (job, scheduled_for, state, together, request)
		VALUES (@job, @at, @state, @together, CASE WHEN @state = @skipped::text THEN nullif(@under::bigint, 0) END)
		ON CONFLICT (job, scheduled_for) DO NOTHING`,
		pgx.NamedArgs{
			"job": string(name), "at": t.At, "state": string(t.State), "together": t.Together, "under": under,
			"skipped": string(Skipped),
		})
	if err != nil {
		return false, fmt.Errorf("write tick %s of %s: %w", t.At, name, err)
	}
	return tag.RowsAffected() == 1, nil
}

// oldest is the oldest tick of a job that waits, nil when none does or a run is under way. It sees what another agent
// has begun since the schedule was read.
func oldest(ctx context.Context, tx *pg.Tx, name job.Name) (*time.Time, error) {
	var at *time.Time
	err := tx.QueryRow(ctx, `SELECT min(scheduled_for) FROM kappactl.tick t WHERE job = @job AND state = @waiting
			AND NOT EXISTS (SELECT FROM kappactl.request r WHERE r.job = t.job AND r.verb = @verb AND r.answered_at IS NULL)`,
		pgx.NamedArgs{"job": string(name), "waiting": string(Waiting), "verb": string(ledger.BatchRun)}).Scan(&at)
	if err != nil {
		return nil, fmt.Errorf("read ticks of %s: %w", name, err)
	}
	return at, nil
}

// started notes the request of a tick.
func started(ctx context.Context, tx *pg.Tx, name job.Name, at time.Time, request int64) error {
	_, err := tx.Exec(ctx, `UPDATE kappactl.tick SET state = @started, request = @request, at = clock_timestamp()
		WHERE job = @job AND scheduled_for = @at`,
		pgx.NamedArgs{"job": string(name), "at": at, "started": string(Started), "request": request})
	if err != nil {
		return fmt.Errorf("write tick %s of %s: %w", at, name, err)
	}
	return nil
}

// move notes the tick that comes next.
func move(ctx context.Context, tx *pg.Tx, name job.Name, next time.Time) error {
	if _, err := tx.Exec(ctx, `UPDATE kappactl.schedule SET next_at = @next WHERE job = @job`,
		pgx.NamedArgs{"job": string(name), "next": next}); err != nil {
		return fmt.Errorf("write the next tick of %s: %w", name, err)
	}
	return nil
}

// noteLate notes since when a job is late, or that it is not any more.
func noteLate(ctx context.Context, tx *pg.Tx, name job.Name, since *time.Time) error {
	if _, err := tx.Exec(ctx, `UPDATE kappactl.schedule SET late_since = @since WHERE job = @job`,
		pgx.NamedArgs{"job": string(name), "since": since}); err != nil {
		return fmt.Errorf("write whether %s is late: %w", name, err)
	}
	return nil
}

// drop leaves out the ticks that wait although nothing begins by their schedule any more.
func drop(ctx context.Context, tx *pg.Tx) error {
	_, err := tx.Exec(ctx, `UPDATE kappactl.tick t SET state = @skipped WHERE state = @waiting
		AND NOT EXISTS (SELECT FROM kappactl.schedule s WHERE s.job = t.job AND s.paused_at IS NULL)`,
		pgx.NamedArgs{"skipped": string(Skipped), "waiting": string(Waiting)})
	if err != nil {
		return fmt.Errorf("leave out ticks: %w", err)
	}
	return nil
}

// ended is a tick whose run has ended.
type ended struct {
	Job          job.Name
	Number       job.Number
	ScheduledFor time.Time
	ExitCode     job.ExitCode
	Answer       reason.Reason
	Told         bool // the history has the failure already
}

// note notes the ticks whose runs have ended, and returns them. Each is returned once.
func note(ctx context.Context, tx *pg.Tx) ([]ended, error) {
	rows, err := pg.Structs[ended](ctx, tx, `WITH open AS (
			SELECT t.job, t.scheduled_for FROM kappactl.tick t
			WHERE t.state = @started AND t.noted_at IS NULL ORDER BY t.job, t.scheduled_for FOR UPDATE SKIP LOCKED)
		UPDATE kappactl.tick t SET noted_at = clock_timestamp() FROM open o, kappactl.request r
		WHERE (t.job, t.scheduled_for) = (o.job, o.scheduled_for) AND r.id = t.request AND r.answered_at IS NOT NULL
		RETURNING t.job, r.number, t.scheduled_for, r.exit_code, r.answer, EXISTS (SELECT FROM kappactl.event e
			WHERE e.job = r.job AND e.number = r.number AND e.at >= r.at AND e.kind = 'batch_failed') AS told`,
		pgx.NamedArgs{"started": string(Started)})
	if err != nil {
		return nil, fmt.Errorf("note the runs that have ended: %w", err)
	}
	return rows, nil
}

// PauseFor pauses the schedule of a job on somebody's behalf. False: there is none that is not paused.
func (Store) PauseFor(ctx context.Context, tx *pg.Tx, name job.Name, by string) (bool, error) {
	tag, err := tx.Exec(ctx, `UPDATE kappactl.schedule SET paused_at = clock_timestamp(), paused_by = @by, late_since = NULL
		WHERE job = @job AND paused_at IS NULL`, pgx.NamedArgs{"job": string(name), "by": by})
	if err != nil {
		return false, fmt.Errorf("pause the schedule of %s: %w", name, err)
	}
	if tag.RowsAffected() == 0 {
		return false, nil
	}
	e := ledger.Entry{
		Job: string(name), Whole: true, Kind: ledger.EventSchedulePaused, Message: reason.SchedulePaused(),
		By: by,
	}
	return true, ledger.AddEvent(ctx, tx, e)
}

// Resume lets a paused schedule go on: it counts from now. next is the next tick; false: the schedule is not paused.
func (Store) Resume(ctx context.Context, tx *pg.Tx, name job.Name, by string) (next time.Time, ok bool, err error) {
	var expression, zone string
	var now time.Time
	err = tx.QueryRow(ctx, `SELECT expression, zone, clock_timestamp() FROM kappactl.schedule
		WHERE job = @job AND paused_at IS NOT NULL FOR UPDATE`, pgx.NamedArgs{"job": string(name)}).Scan(&expression, &zone, &now)
	if err == pgx.ErrNoRows { //nolint:errorlint // never wrapped
		return next, false, nil
	}
	if err != nil {
		return next, false, fmt.Errorf("read the schedule of %s: %w", name, err)
	}
	m, err := NewMoments(expression, zone)
	if err != nil {
		return next, false, err
	}
	now = now.Truncate(time.Second)
	next = m.Next(now)
	if _, err := tx.Exec(ctx, `UPDATE kappactl.schedule SET paused_at = NULL, paused_by = '', since = @now, next_at = @next
		WHERE job = @job`,
		pgx.NamedArgs{"job": string(name), "now": now, "next": next}); err != nil {
		return next, false, fmt.Errorf("resume the schedule of %s: %w", name, err)
	}
	e := ledger.Entry{
		Job: string(name), Whole: true, Kind: ledger.EventScheduleResumed,
		Message: reason.ScheduleResumed(next), By: by,
	}
	return next, true, ledger.AddEvent(ctx, tx, e)
}
