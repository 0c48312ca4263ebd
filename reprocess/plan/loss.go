package plan

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/readiness"
)

// olderTimeout bounds the count of rows that would be lost.
const olderTimeout = 3 * time.Second

// histories are those of two versions whose coverage is compared.
type histories struct {
	live      job.Ref
	liveSpec  *job.Spec
	layout    job.Layout        // of live
	covered   []readiness.Start // by live
	candidate *job.Spec
	begins    []readiness.Start
	to        job.Layout // of the candidate
	gaps      readiness.Gaps
}

// losses are what readers would lose; kept is that of readiness.Coverage.
func (c histories) losses(kept map[job.Partition]int64) []readiness.Loss {
	return append(readiness.Coverage(c.covered, c.begins, kept), c.gaps.Losses(kept)...)
}

// compare finds what readers would lose, and only then asks how much that is.
func (q Survey) compare(ctx context.Context, c histories) (readiness.Lost, error) {
	if len(c.losses(nil)) == 0 {
		return readiness.Lost{}, nil
	}
	kept, err := Kept(ctx, q.Brokers, Keeping{c.liveSpec, c.layout}, Keeping{c.candidate, c.to}, q.Now)
	if err != nil {
		return readiness.Lost{}, err
	}
	lost := readiness.Lost{Losses: c.losses(kept)}
	if len(lost.Losses) == 0 {
		return lost, nil
	}
	if kept == nil && c.expires() {
		if err := q.unexpired(ctx, c, &lost); err != nil || len(lost.Losses) == 0 {
			return lost, err
		}
	}
	if err := q.dates(ctx, &lost); err != nil {
		return readiness.Lost{}, err
	}
	return lost, q.older(ctx, c, &lost)
}

// dates finds the times at which live and the candidate begin, and at which the candidate goes on behind its gaps.
func (q Survey) dates(ctx context.Context, lost *readiness.Lost) error {
	began, err := q.times(ctx, lost.Losses, readiness.LossLater, func(l readiness.Loss) int64 { return l.Live.From })
	if err != nil {
		return fmt.Errorf("read when live begins: %w", err)
	}
	ends := func(l readiness.Loss) int64 { return l.Candidate }
	begins, err := q.times(ctx, lost.Losses, readiness.LossLater, ends)
	if err != nil {
		return fmt.Errorf("read when the candidate begins: %w", err)
	}
	behind, err := q.times(ctx, lost.Losses, readiness.LossGap, ends)
	if err != nil {
		return fmt.Errorf("read when the candidate goes on behind its gaps: %w", err)
	}
	known := true
	for i := range lost.Losses {
		l := &lost.Losses[i]
		found := begins
		if l.Kind == readiness.LossGap {
			found = behind
		} else if at, ok := began[l.Live.Partition]; ok {
			l.LiveSince = &at
		}
		at, ok := found[l.Live.Partition]
		if !ok {
			known = false
			continue
		}
		l.Since = &at
		if lost.Before == nil || at.After(*lost.Before) {
			lost.Before = &at
		}
	}
	if !known {
		lost.Before, lost.Why = nil, reason.StartUnknown()
	}
	return nil
}

// times are those of the records at an offset of each loss of a kind, of the last one of a partition.
func (q Survey) times(
	ctx context.Context, losses []readiness.Loss, kind readiness.LossKind, offset func(readiness.Loss) int64,
) (map[job.Partition]time.Time, error) {
	at := map[job.Partition]int64{}
	for _, l := range losses {
		if l.Kind == kind {
			at[l.Live.Partition] = max(at[l.Live.Partition], offset(l))
		}
	}
	if len(at) == 0 {
		return nil, nil //nolint:nilnil // nothing to ask
	}
	return q.Brokers.Times(ctx, at)
}

// older counts the rows that readers see now and that are older than what the candidate covers.
func (q Survey) older(ctx context.Context, c histories, lost *readiness.Lost) error {
	column, kind := timeColumn(c.layout)
	switch {
	case lost.Before == nil || lost.Kept != nil:
		return nil
	case column == "" || q.Serving == nil:
		lost.Why = reason.NoTimeKey()
		return nil
	}
	moment := "@before::timestamptz"
	if kind != "timestamp with time zone" {
		moment = "(@before::timestamptz AT TIME ZONE 'UTC')"
	}
	var err error
	lost.Older, lost.Why, err = q.count(ctx, c, fmt.Sprintf("q.%s < %s", pg.Ident(column), moment), *lost.Before)
	return err
}

// count counts rows of live's view, aliased q, up to readiness.OlderMost + 1. Nil: why.
func (q Survey) count(ctx context.Context, c histories, where string, before time.Time) (*int64, reason.Reason, error) {
	live := job.Version{Ref: c.live, Schema: c.liveSpec.Serve.View.Schema, Layout: c.layout}
	sql := fmt.Sprintf("SELECT count(*) FROM (SELECT FROM (%s\n) AS q WHERE %s LIMIT %d) AS counted",
		q.Serving.Select(live), where, readiness.OlderMost+1)
	var n int64
	err := q.bounded(ctx, func(db pg.DB) error {
		return db.QueryRow(ctx, sql, pgx.NamedArgs{"before": before}).Scan(&n)
	})
	switch {
	case err == nil:
		return &n, reason.Reason{}, nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded): // what is lost is known, and is the answer
		return nil, reason.NoTimeLeft(), nil
	case ctx.Err() != nil || pg.Unreachable(err):
		return nil, reason.Reason{}, fmt.Errorf("count the keys of %s: %w", c.live, err)
	case pg.Code(err) == pgerrcode.QueryCanceled:
		return nil, reason.CountTooSlow(olderTimeout), nil
	}
	return nil, reason.Error(err), nil
}

// bounded runs f where a statement may take olderTimeout.
func (q Survey) bounded(ctx context.Context, f func(pg.DB) error) error {
	pool, ok := q.DB.(*pg.Pool)
	if !ok {
		return f(q.DB)
	}
	return pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT set_config('statement_timeout', @limit, true)`,
			pgx.NamedArgs{"limit": fmt.Sprintf("%dms", olderTimeout.Milliseconds())}); err != nil {
			return err
		}
		return f(tx)
	})
}

// timeColumn is the view's column of the first time key; empty when there is none.
func timeColumn(l job.Layout) (name, kind string) {
	for _, k := range l.Keys {
		if !k.Time {
			continue
		}
		for _, v := range l.View {
			if v.Key && v.Name == k.Name {
				return v.Name, v.Type
			}
		}
	}
	return "", ""
}

// lossRefusal is the refusal to lose results; nil when nothing is lost. start is where the candidate's replay is to
// begin when that is not decided yet, else empty.
func lossRefusal(l readiness.Lost, live, candidate job.Ref, start string, now time.Time) error {
	if len(l.Losses) == 0 {
		return nil
	}
	token := readiness.Token(readiness.Moving(l.Losses, start, now))
	return ledger.RefuseFor(job.ExitGap, "kappactl deploy FILE --accept-shorter-history="+token, l.Reason(live, candidate))
}
