package schedule

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/internal/retry"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// asks is who asked for a run of the schedule.
const asks = "schedule"

// Deps are what a Scheduler works with.
type Deps struct {
	Pool *pg.Pool
	Log  *slog.Logger
	// Clock is read once in each look; nil: the database's.
	Clock func(context.Context, pg.DB) (time.Time, error)
}

// Config sets how often a Scheduler polls. Zero fields mean the defaults set in New.
type Config struct {
	Look   time.Duration // at the ticks, default 1 s
	Follow time.Duration // at the job files, default 3 s
}

// Scheduler begins the batch runs that schedules ask for. Every agent has one, and each does the same.
type Scheduler struct {
	Deps
	config   Config
	followed time.Time // when the job files were last looked at, by this machine's clock
	wrong    map[job.Name]string
}

// New makes a Scheduler. It opens nothing.
func New(d Deps, c Config) *Scheduler {
	c.Look = cmp.Or(c.Look, time.Second)
	c.Follow = cmp.Or(c.Follow, 3*time.Second)
	if d.Clock == nil {
		d.Clock = readClock
	}
	return &Scheduler{Deps: d, config: c, wrong: map[job.Name]string{}}
}

// lookLimit is how long one look may take.
const lookLimit = 30 * time.Second

// Run polls until ctx ends. Its error is always nil.
func (s *Scheduler) Run(ctx context.Context) error {
	retry.Every(ctx, s.config.Look, lookLimit, s.Look, func(err error) { s.Log.Warn("look at schedules", "error", err) })
	return nil
}

// Look follows the job files, writes the ticks that are due, and asks for their runs, in one transaction. It is called
// by one goroutine at a time.
func (s *Scheduler) Look(ctx context.Context) error {
	follow := time.Since(s.followed) >= s.config.Follow
	if !follow {
		if none, err := idle(ctx, s.Pool); err != nil || none {
			return err
		}
	}
	return s.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		now, err := s.Clock(ctx, tx)
		if err != nil {
			return err
		}
		if follow {
			if err := s.follow(ctx, tx, now); err != nil {
				return err
			}
			s.followed = time.Now()
		}
		found, err := lock(ctx, tx)
		if err != nil {
			return err
		}
		for _, r := range found {
			if err := s.schedule(ctx, tx, r, now); err != nil {
				return err
			}
		}
		return s.outcomes(ctx, tx)
	})
}

// follow makes the schedules be those of the job files that are in force.
func (s *Scheduler) follow(ctx context.Context, tx *pg.Tx, now time.Time) error {
	changed, err := wishes(ctx, tx)
	if err != nil {
		return err
	}
	for _, w := range changed {
		m, ok := s.moments(w.Job, w.Batch.Schedule, w.Batch.Zone)
		if !ok {
			continue
		}
		from := now.Truncate(time.Second)
		if err := set(ctx, tx, w, from, m.Next(from)); err != nil {
			return err
		}
	}
	if err := end(ctx, tx); err != nil {
		return err
	}
	return drop(ctx, tx)
}

// moments reads a schedule. False: this release cannot, and has logged why.
func (s *Scheduler) moments(name job.Name, expression, zone string) (Moments, bool) {
	m, err := NewMoments(expression, zone)
	if err == nil {
		delete(s.wrong, name)
		return m, true
	}
	if s.wrong[name] != err.Error() {
		s.wrong[name] = err.Error()
		s.Log.Warn("the schedule cannot be followed", "job", name, "error", err)
	}
	return Moments{}, false
}

// schedule writes the ticks of one job that are due, and asks for the run of the oldest that waits.
func (s *Scheduler) schedule(ctx context.Context, tx *pg.Tx, r row, now time.Time) error {
	m, ok := s.moments(r.Job, r.Expression, r.Zone)
	if !ok {
		return nil
	}
	ticks, next := m.Due(r.NextAt, now, r.policy(), r.Under != 0, r.Waiting)
	for _, t := range ticks {
		written, err := add(ctx, tx, r.Job, t, r.Under)
		if err != nil {
			return err
		}
		if written && t.State == Missed {
			e := ledger.Entry{
				Job: string(r.Job), Number: int(r.Number), Kind: ledger.EventScheduleMissed,
				Message: reason.ScheduleMissed(t.Together, t.At), By: asks,
			}
			if err := ledger.AddEvent(ctx, tx, e); err != nil {
				return err
			}
		}
	}
	if len(ticks) > 0 {
		if err := move(ctx, tx, r.Job, next); err != nil {
			return err
		}
	}
	if r.Under == 0 && (r.Waiting || len(ticks) > 0) {
		if err := s.begin(ctx, tx, r); err != nil {
			return err
		}
	}
	return late(ctx, tx, r, m, now)
}

// begin asks for the run of the oldest tick that waits.
func (s *Scheduler) begin(ctx context.Context, tx *pg.Tx, r row) error {
	at, err := oldest(ctx, tx, r.Job)
	if err != nil || at == nil {
		return err
	}
	id, err := ledger.AskWithin(ctx, tx, ledger.Request{
		Job: r.Job, Number: r.Number, Verb: ledger.BatchRun, Args: ledger.Args{Tick: at}, By: asks,
	})
	if err != nil {
		return err
	}
	s.Log.Info("batch run of the schedule", "job", r.Job, "version", r.Number.String(),
		"tick", at.UTC().Format(time.RFC3339), "request", id)
	return started(ctx, tx, r.Job, *at, id)
}

// late notes when a job becomes late, and when it is not any more.
func late(ctx context.Context, tx *pg.Tx, r row, m Moments, now time.Time) error {
	from := r.Since
	if r.Cut != nil && r.Cut.After(from) {
		from = *r.Cut
	}
	since := m.LateAt(from)
	if is := !since.After(now); is == r.Late {
		return nil
	} else if !is {
		return noteLate(ctx, tx, r.Job, nil)
	}
	if err := noteLate(ctx, tx, r.Job, &since); err != nil {
		return err
	}
	return ledger.AddEvent(ctx, tx, ledger.Entry{
		Job: string(r.Job), Number: int(r.Number), Kind: ledger.EventBatchLate, Message: reason.BatchLate(r.Cut), By: asks,
	})
}

// outcomes writes into the history which runs of schedules failed, unless it has them.
func (s *Scheduler) outcomes(ctx context.Context, tx *pg.Tx) error {
	found, err := note(ctx, tx)
	if err != nil {
		return err
	}
	for _, t := range found {
		// Another run does the same, or a person knows that they ended it: neither is a failure.
		if t.ExitCode == job.ExitOK || t.Told || t.Answer.Is(reason.CodeBatchUnderWay, reason.CodeBatchCancelled) {
			continue
		}
		e := ledger.Entry{
			Job: string(t.Job), Number: int(t.Number), Kind: ledger.EventScheduleFailed,
			Message: reason.ScheduleFailed(t.ScheduledFor, t.Answer), By: asks,
		}
		if err := ledger.AddEvent(ctx, tx, e); err != nil {
			return err
		}
	}
	return nil
}
