package reprocess

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

const (
	// olderMost is how many of live's keys are counted at most: a refusal must not read a large table.
	olderMost = 100_000
	// olderTimeout bounds that count.
	olderTimeout = 3 * time.Second
)

// Lost is what readers would lose by a flip, and what is known about how much that is.
type Lost struct {
	Losses []Loss
	// Before is since when the candidate covers every partition that lost something; nil: unknown.
	Before *time.Time
	// Older are the rows of live's view with a time key before that, counted up to olderMost; nil: unknown, Why says why.
	Older *int64
	Why   string
}

// histories are those of two versions whose coverage is compared.
type histories struct {
	live      job.Ref
	liveSpec  *job.Spec
	layout    job.Layout // of live
	covered   []Start    // by live
	candidate *job.Spec
	begins    []Start
}

// survey has what a comparison asks.
type survey struct {
	db     pg.DB
	topics Topics
	log    Log
	views  Views // nil: keys are not counted
	now    time.Time
}

// compare finds what readers would lose, and only then asks how much that is.
func (q survey) compare(ctx context.Context, c histories) (Lost, error) {
	if len(Coverage(c.covered, c.begins, nil)) == 0 {
		return Lost{}, nil
	}
	kept, err := Kept(ctx, q.topics, c.liveSpec, c.candidate, q.now)
	if err != nil {
		return Lost{}, err
	}
	lost := Lost{Losses: Coverage(c.covered, c.begins, kept)}
	if len(lost.Losses) == 0 {
		return lost, nil
	}
	if err := q.dates(ctx, &lost); err != nil {
		return Lost{}, err
	}
	return lost, q.older(ctx, c, &lost)
}

// dates finds the times at which live and the candidate begin.
func (q survey) dates(ctx context.Context, lost *Lost) error {
	live, candidate := map[job.Partition]int64{}, map[job.Partition]int64{}
	for _, l := range lost.Losses {
		if l.Kind == LossLater {
			live[l.Live.Partition], candidate[l.Live.Partition] = l.Live.From, l.Candidate
		}
	}
	began, err := q.log.Times(ctx, live)
	if err != nil {
		return fmt.Errorf("read when live begins: %w", err)
	}
	begins, err := q.log.Times(ctx, candidate)
	if err != nil {
		return fmt.Errorf("read when the candidate begins: %w", err)
	}
	known := true
	for i := range lost.Losses {
		l := &lost.Losses[i]
		if at, ok := began[l.Live.Partition]; ok {
			l.LiveSince = &at
		}
		at, ok := begins[l.Live.Partition]
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
		lost.Before, lost.Why = nil, "when a partition begins is not known"
	}
	return nil
}

// older counts the rows that readers see now and that are older than what the candidate covers.
func (q survey) older(ctx context.Context, c histories, lost *Lost) error {
	column, kind := timeColumn(c.layout)
	switch {
	case lost.Before == nil:
		return nil
	case column == "" || q.views == nil:
		lost.Why = "there is no time among the keys"
		return nil
	}
	moment := "@before::timestamptz"
	if kind != "timestamp with time zone" {
		moment = "(@before::timestamptz AT TIME ZONE 'UTC')"
	}
	sql := fmt.Sprintf("SELECT count(*) FROM (SELECT FROM (%s\n) AS q WHERE q.%s < %s LIMIT %d) AS older",
		q.views.Select(c.live, c.liveSpec.Serve.View.Schema, c.layout), pg.Ident(column), moment, olderMost+1)
	var n int64
	err := q.bounded(ctx, func(db pg.DB) error {
		return db.QueryRow(ctx, sql, pgx.NamedArgs{"before": *lost.Before}).Scan(&n)
	})
	switch {
	case err == nil:
		lost.Older = &n
	case errors.Is(ctx.Err(), context.DeadlineExceeded): // what is lost is known, and is the answer
		lost.Why = "there was no time left to count them"
	case ctx.Err() != nil || pg.Unreachable(err):
		return fmt.Errorf("count the keys of %s: %w", c.live, err)
	case pg.Code(err) == "57014":
		lost.Why = fmt.Sprintf("counting them takes longer than %s", olderTimeout)
	default:
		lost.Why = err.Error()
	}
	return nil
}

// bounded runs f where a statement may take olderTimeout.
func (q survey) bounded(ctx context.Context, f func(pg.DB) error) error {
	pool, ok := q.db.(*pg.Pool)
	if !ok {
		return f(q.db)
	}
	return pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT set_config('statement_timeout', @limit, true)`, pgx.NamedArgs{"limit": fmt.Sprintf("%dms", olderTimeout.Milliseconds())}); err != nil {
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

// words are the loss for a person: a line a partition, then the keys.
func (l Lost) words(live, candidate job.Number) string {
	var b strings.Builder
	for _, loss := range l.Losses {
		b.WriteString("\n  " + loss.words(live, candidate))
	}
	fmt.Fprintf(&b, "\n  rows of %s older than what %s covers: %s", live, candidate, l.count())
	return b.String()
}

func (l Lost) count() string {
	switch {
	case l.Older == nil && l.Why == "":
		return "unknown"
	case l.Older == nil:
		return "unknown: " + l.Why
	case *l.Older > olderMost:
		return fmt.Sprintf("more than %s before %s", grouped(olderMost), stamp(*l.Before))
	}
	return fmt.Sprintf("%s before %s", grouped(*l.Older), stamp(*l.Before))
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
