package abtest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/checks"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

const (
	sourceHTTP  = "http"
	sourceSQL   = "sql"
	sourceKafka = "kafka"

	batchRewards = 1000
)

// gather reads new rewards, from where they come. What stands in its way is noted: the weights stay until it is gone.
func (w *watch) gather(ctx context.Context, e *row) error {
	if e.Settings.Reward == nil {
		return nil
	}
	var err error
	switch e.Settings.Reward.Source.Name() {
	case sourceHTTP:
		return nil
	case sourceSQL:
		err = w.gatherSQL(ctx, e)
	case sourceKafka:
		err = w.gatherTopic(ctx, e)
	}
	if ctx.Err() != nil || pg.Unreachable(err) {
		return err
	}
	var trouble reason.Reason
	if err != nil {
		trouble = checks.Why(err)
	}
	_, err = w.r.Pool.Exec(ctx,
		`UPDATE kappactl.reward_source SET trouble = @why WHERE job = @job AND run = @run AND trouble <> @why::jsonb`,
		pgx.NamedArgs{"job": e.Job, "run": e.Run, "why": trouble})
	return ledger.Wrap(err, "note how the rewards of %s were read", e.Job)
}

// withTime puts a time in the place of $1.
func withTime(sql string, at time.Time) string {
	return strings.ReplaceAll(sql, "$1", "('"+at.UTC().Format(time.RFC3339Nano)+"'::timestamptz)")
}

// gatherSQL runs the query, when it is due, and stores what it returns.
func (w *watch) gatherSQL(ctx context.Context, e *row) error {
	now, err := w.r.clock(ctx, w.r.Pool)
	if err != nil {
		return err
	}
	source := e.Settings.Reward.Source
	var read, mark *time.Time
	err = w.r.Pool.QueryRow(ctx, `SELECT read_at, watermark FROM kappactl.reward_source WHERE job = @job AND run = @run`,
		pgx.NamedArgs{"job": e.Job, "run": e.Run}).Scan(&read, &mark)
	switch {
	case err != nil:
		return fmt.Errorf("read when rewards of %s were read: %w", e.Job, err)
	case read != nil && now.Sub(*read) < source.Every:
		return nil
	}
	// The earliest time that still counts: subjects that came before it have been counted at the watermark.
	earliest := e.StartedAt
	if mark != nil && mark.Add(-e.Settings.Reward.Window-e.Settings.Reward.Grace).After(earliest) {
		earliest = mark.Add(-e.Settings.Reward.Window - e.Settings.Reward.Grace)
	}
	var found []Reward
	var event, subject *string
	var value *float64
	var at *time.Time
	q := w.query(e, source.SQL, earliest)
	q.Select = "q.event_id::text, q.subject::text, q.value::double precision, q.ts::timestamptz"
	q.Columns = "event_id text, subject text, value double precision, ts timestamptz"
	err = checks.Ask(ctx, w.r.Pool, q, []any{&event, &subject, &value, &at}, func() error {
		var r Reward
		if event != nil && subject != nil && value != nil && at != nil {
			r = Reward{EventID: *event, Subject: *subject, Value: *value, At: *at}
		}
		found = append(found, r)
		return nil
	})
	if err != nil {
		return err
	}
	for first := 0; ; first += batchRewards {
		last := first+batchRewards >= len(found)
		err := w.store(ctx, e, found[first:min(len(found), first+batchRewards)], func(b *book) {
			if b.Now = now; last {
				mark := now.Add(-source.Lag)
				b.Watermark, b.ReadAt = &mark, &now
			}
		})
		if err != nil || last {
			return err
		}
	}
}

// store records rewards under the claim of the run. note changes how far they have been read: in the same transaction.
func (w *watch) store(ctx context.Context, e *row, rewards []Reward, note func(*book)) error {
	return w.r.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if held, err := w.held(ctx, tx); err != nil || held == nil {
			return err
		}
		b, err := openBook(ctx, tx, job.Name(e.Job))
		if err != nil || b == nil || b.Run != e.Run {
			return err
		}
		before := b.Watermark // what is read now came before the next one
		note(b)
		after := b.Watermark
		b.Watermark = before
		codes, err := b.judge(ctx, tx, rewards)
		if err != nil {
			return err
		}
		b.Watermark = after
		b.count(codes)
		return b.keep(ctx, tx)
	})
}
