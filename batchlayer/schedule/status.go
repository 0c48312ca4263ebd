package schedule

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// Condition is whether runs begin by a schedule.
type Condition string

// The conditions of a schedule.
const (
	Active    Condition = "active"
	Late      Condition = "late"      // two runs were due, and readers see the results of neither
	Paused    Condition = "paused"    // by a person, or by a rollback to another generation
	NotLambda Condition = "no_lambda" // the job file has a schedule, and the live version is none of mode lambda
	Starting  Condition = "starting"  // no agent has seen it yet
)

// Status is the schedule of a job. Its JSON is documented and only ever grows.
type Status struct {
	Job         job.Name          `json:"job"`
	State       Condition         `json:"state"`
	Expression  string            `json:"expression"`
	Zone        string            `json:"zone"`
	Missed      job.MissedPolicy  `json:"missed"`
	Overlap     job.OverlapPolicy `json:"overlap"`
	MissedAfter float64           `json:"missed_after_seconds"`
	NextAt      *time.Time        `json:"next_at"` // null: none begins by itself
	PausedAt    *time.Time        `json:"paused_at"`
	PausedBy    string            `json:"paused_by"`
	LateSince   *time.Time        `json:"late_since"`
	Last        *Run              `json:"last"` // null: none was due yet
}

// Run is the newest tick of a schedule.
type Run struct {
	ScheduledFor time.Time     `json:"scheduled_for"`
	State        State         `json:"state"`
	Together     int           `json:"together"` // the number of ticks it represents
	Request      *int64        `json:"request"`  // of a skipped one: the run that was under way
	StartedAt    *time.Time    `json:"started_at"`
	EndedAt      *time.Time    `json:"ended_at"`  // null: it is under way, or does not run
	ExitCode     *job.ExitCode `json:"exit_code"` // as of batch run
	Message      string        `json:"message"`
	MessageCode  reason.Code   `json:"message_code"`
}

type statusRow struct {
	Job, Mode, Expression, Zone, Missed, Overlap string
	MissedAfter                                  float64
	Known                                        bool
	NextAt, PausedAt, LateSince                  *time.Time
	PausedBy                                     string
	ScheduledFor                                 *time.Time
	State                                        *State
	Together                                     *int
	Request                                      *int64
	At, EndedAt                                  *time.Time
	ExitCode                                     *job.ExitCode
	Answer                                       *reason.Reason
}

// Statuses are the schedules of all jobs, or of one, by job: those that agents follow, and those of job files that they
// do not.
func (Store) Statuses(ctx context.Context, db pg.DB, name job.Name) ([]Status, error) {
	rows, err := pg.Structs[statusRow](ctx, db, `SELECT coalesce(s.job, w.job) AS job, coalesce(w.mode, '') AS mode,
			s.job IS NOT NULL AS known,
			coalesce(s.expression, w.batch ->> 'schedule') AS expression, coalesce(s.zone, w.batch ->> 'zone') AS zone,
			coalesce(s.missed, w.batch ->> 'missed') AS missed, coalesce(s.overlap, w.batch ->> 'overlap') AS overlap,
			coalesce(extract(epoch FROM s.missed_after), (w.batch ->> 'missed_after')::bigint / 1e9)::double precision AS missed_after,
			s.next_at, s.paused_at, s.late_since, coalesce(s.paused_by, '') AS paused_by,
			t.scheduled_for, t.state, t.together, t.request, t.at,
			CASE WHEN t.state = 'started' THEN r.answered_at END AS ended_at,
			CASE WHEN t.state = 'started' THEN r.exit_code END AS exit_code,
			CASE WHEN t.state = 'started' THEN r.answer END AS answer
		FROM (SELECT DISTINCT ON (v.job) v.job, CASE WHEN v.number = j.live THEN v.spec ->> 'mode' END AS mode,
				v.spec -> 'batch' AS batch
			FROM kappactl.version v JOIN kappactl.job j ON j.name = v.job AND j.dropping_at IS NULL
			WHERE v.ended_at IS NULL ORDER BY v.job, coalesce(v.number = j.live, false) DESC, v.number DESC) w
		FULL JOIN kappactl.schedule s ON s.job = w.job
		LEFT JOIN LATERAL (SELECT * FROM kappactl.tick t WHERE t.job = coalesce(s.job, w.job)
			ORDER BY scheduled_for DESC LIMIT 1) t ON true
		LEFT JOIN kappactl.request r ON r.id = t.request
		WHERE (s.job IS NOT NULL OR w.batch ->> 'schedule' <> '') AND (@job::text = '' OR @job = coalesce(s.job, w.job))
		ORDER BY 1`,
		pgx.NamedArgs{"job": string(name)})
	if err != nil {
		return nil, fmt.Errorf("read schedules: %w", err)
	}
	out := make([]Status, len(rows))
	for i, r := range rows {
		out[i] = r.status()
	}
	return out, nil
}

func (r statusRow) status() Status {
	s := Status{
		Job: job.Name(r.Job), State: Active, Expression: r.Expression, Zone: r.Zone, Missed: job.MissedPolicy(r.Missed),
		Overlap: job.OverlapPolicy(r.Overlap), MissedAfter: r.MissedAfter, NextAt: r.NextAt, PausedAt: r.PausedAt,
		PausedBy:  r.PausedBy,
		LateSince: r.LateSince, Last: r.last(),
	}
	switch {
	case r.Mode != string(job.Lambda):
		s.State, s.NextAt = NotLambda, nil
	case !r.Known:
		s.State = Starting
	case r.PausedAt != nil:
		s.State, s.NextAt = Paused, nil
	case r.LateSince != nil:
		s.State = Late
	}
	return s
}

func (r statusRow) last() *Run {
	if r.ScheduledFor == nil {
		return nil
	}
	l := Run{
		ScheduledFor: *r.ScheduledFor, State: *r.State, Together: *r.Together, Request: r.Request, EndedAt: r.EndedAt,
		ExitCode: r.ExitCode,
	}
	if *r.State == Started {
		l.StartedAt = r.At
	}
	if r.Answer != nil {
		l.Message, l.MessageCode = r.Answer.Text(), r.Answer.Code
	}
	return &l
}

// RunNow asks for a run as the schedule would, and leaves its next tick as it is. A run under way is returned instead.
func (Store) RunNow(ctx context.Context, tx *pg.Tx, name job.Name, by string) (request int64, under bool, err error) {
	var number job.Number
	err = tx.QueryRow(ctx, `SELECT w.number, coalesce((SELECT min(r.id) FROM kappactl.request r
			WHERE r.job = w.job AND r.verb = @verb AND r.answered_at IS NULL), 0)
		FROM (`+lambdaLive+`) w WHERE w.job = @job`,
		pgx.NamedArgs{"job": string(name), "verb": string(ledger.BatchRun)}).Scan(&number, &request)
	if err != nil {
		return 0, false, fmt.Errorf("read the schedule of %s: %w", name, err)
	}
	if request != 0 {
		return request, true, nil
	}
	request, err = ledger.AskWithin(ctx, tx, ledger.Request{Job: name, Number: number, Verb: ledger.BatchRun, By: by})
	return request, false, err
}
