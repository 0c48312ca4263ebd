package reprocess

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Plan is what deploying a file would do, by the rules that deploy follows. Nothing is written.
type Plan struct {
	Staged   // what Stage would do; Deployment means nothing
	Live     *job.Ref
	LiveSpec *job.Spec    // of the live version, else nil
	LiveView job.Layout   // of the live version
	Refusals []error      // why deploy would refuse, each a *job.Refusal
	Lost     Lost         // results that readers would lose
	Frozen   []job.Frozen // the ranges to replay
	Topics   []job.TopicFacts
	// Rate is how many records a second one worker got through in the job's newest replay; nil when there was none.
	Rate *float64

	ages ages
}

// errPlanned rolls a staging back.
var errPlanned = errors.New("planned")

// Sources are what a plan asks.
type Sources struct {
	Topics    Topics
	Records   Log
	Positions Positions
}

// Plan stages in a transaction that is rolled back, and freezes without writing.
func (s *Store) Plan(ctx context.Context, in Staging, from Sources, now time.Time) (Plan, error) {
	var p Plan
	refused := func(err error) error {
		var r *job.Refusal
		if errors.As(err, &r) {
			p.Refusals = append(p.Refusals, r)
			return nil
		}
		return err
	}
	err := s.pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := s.planStage(ctx, tx, in, &p); err != nil {
			return err
		}
		return errPlanned
	})
	if err = refused(err); err != nil && !errors.Is(err, errPlanned) {
		return Plan{}, fmt.Errorf("plan %s: %w", in.Spec.Job, err)
	}
	p.Job = in.Spec.Job
	if p.Rate, err = pastRate(ctx, s.pool, in.Spec.Job); err != nil {
		return Plan{}, err
	}
	if p.Nothing || p.FlipOnly || p.Resumed {
		return p, nil
	}
	if p.Topics, err = from.Topics.Topics(ctx, in.Spec.Source.Topics); err != nil {
		return Plan{}, fmt.Errorf("ask the brokers for %v: %w", in.Spec.Source.Topics, err)
	}
	for _, t := range p.Topics {
		if t.Compacted && in.Layout.Shape != job.Latest {
			p.Refusals = append(p.Refusals, compactedRefusal(t))
		}
	}
	if p.Frozen, err = ranges(ctx, from.Topics, in.Spec, p.Topics, now); refused(err) != nil {
		return Plan{}, err
	}
	if p.ages, err = askAges(ctx, from.Topics, in.Spec.Source.Topics, now); err != nil {
		return Plan{}, err
	}
	return p, s.planCoverage(ctx, in, from, now, &p)
}

// Ahead is what a deploy would replay, without a staging: of a Plan, the ranges and topics only. Nothing is ahead when the job has a
// version of this hash that has not ended.
func (s *Store) Ahead(ctx context.Context, in Staging, topics Topics, now time.Time) (Plan, error) {
	var known bool
	err := s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM kappactl.version WHERE job = @job AND hash = @hash AND ended_at IS NULL)`,
		pgx.NamedArgs{"job": string(in.Spec.Job), "hash": in.Hash}).Scan(&known)
	if err != nil || known {
		return Plan{}, wrap(err, "look for a version of %s", in.Spec.Job)
	}
	p := Plan{}
	if p.Topics, err = topics.Topics(ctx, in.Spec.Source.Topics); err != nil {
		return Plan{}, fmt.Errorf("ask the brokers for %v: %w", in.Spec.Source.Topics, err)
	}
	p.Frozen, err = ranges(ctx, topics, in.Spec, p.Topics, now)
	return p, err
}

// planStage stages and reads what is live.
func (s *Store) planStage(ctx context.Context, tx *pg.Tx, in Staging, p *Plan) error {
	j, err := lockJobFor(ctx, tx, in)
	if err != nil {
		return err
	}
	if j.Live != nil {
		live := job.Ref{Job: in.Spec.Job, Number: job.Number(*j.Live)}
		if p.LiveSpec, p.LiveView, err = specOf(ctx, tx, live); err != nil {
			return err
		}
		p.Live = &live
	}
	if err := checkView(ctx, tx, in, j); err != nil {
		return err
	}
	p.Staged, err = stage(ctx, tx, in, j)
	return err
}

// planCoverage compares what the version would cover with what live covers.
func (s *Store) planCoverage(ctx context.Context, in Staging, from Sources, now time.Time, p *Plan) error {
	if p.Live == nil || p.Frozen == nil {
		return nil
	}
	covers, err := liveCovers(ctx, s.pool, from.Positions, *p.Live, starts(p.Frozen))
	if err != nil {
		return err
	}
	layout := p.LiveView
	if p.Live.Adopted() {
		layout = keyedAs(layout, in.Layout)
	}
	q := survey{db: s.pool, topics: from.Topics, log: from.Records, views: in.Views, now: now}
	p.Lost, err = q.compare(ctx, histories{
		live: *p.Live, liveSpec: p.LiveSpec, layout: layout, covered: covers, candidate: in.Spec, begins: starts(p.Frozen),
	})
	if err != nil || accepts(in.AcceptShorterHistory, p.Lost.Losses, in.Spec.Replay.Start, now) {
		return err
	}
	ref := job.Ref{Job: in.Spec.Job, Number: p.Number}
	if err := p.Lost.refusal(*p.Live, ref, in.Spec.Replay.Start, now); err != nil {
		p.Refusals = append(p.Refusals, err)
	}
	return nil
}

// pastRate is records a second of one worker over the newest replay of the job that was finished. One of few records says more about the
// beginning of a segment than about records.
func pastRate(ctx context.Context, db pg.DB, name job.Name) (*float64, error) {
	var rate *float64
	err := db.QueryRow(ctx, `SELECT sum(records) / nullif(sum(coalesce((timings ->> 'all')::double precision,
				(timings ->> 'query')::double precision + (timings ->> 'land')::double precision, 0)), 0)
		FROM kappactl.segment WHERE job = @job AND state = 'done' AND records > 0
		GROUP BY number HAVING sum(records) >= 20000 ORDER BY number DESC LIMIT 1`, pgx.NamedArgs{"job": string(name)}).Scan(&rate)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // no replay yet
	}
	if err != nil {
		return nil, fmt.Errorf("read the timings of earlier segments: %w", err)
	}
	return rate, nil
}

// Segments is in how many segments the ranges would be replayed.
func (p Plan) Segments() int {
	n := int64(0)
	for _, f := range p.Frozen {
		limit := int64(segmentOffsets)
		if f.SplitAt > 0 {
			limit = min(limit, f.SplitAt)
		}
		n += (f.Len() + limit - 1) / limit
	}
	return int(n)
}

// Offsets is how many offsets the ranges have.
func (p Plan) Offsets() int64 {
	n := int64(0)
	for _, f := range p.Frozen {
		n += f.Len()
	}
	return n
}

// DeletesFrom is when retention may begin to delete what is replayed of a topic; nil when it does not, or that is not known.
func (p Plan) DeletesFrom(topic string) *time.Time {
	return p.sooner(topic, func(f job.Frozen) *time.Time { return p.ages.deadline(f.Partition, f.From) })
}

// Overtaken is when retention may delete what a replay that takes so many seconds has not read of a topic, or has only just; nil when
// it has time.
func (p Plan) Overtaken(topic string, seconds float64) *time.Time {
	return p.sooner(topic, func(f job.Frozen) *time.Time { return p.ages.overtaken(f, secondsOf(seconds)) })
}

func (p Plan) sooner(topic string, of func(job.Frozen) *time.Time) *time.Time {
	var first *time.Time
	for _, f := range p.Frozen {
		if f.Topic != topic || f.From >= f.To {
			continue
		}
		if at := of(f); at != nil && (first == nil || at.Before(*first)) {
			first = at
		}
	}
	return first
}

// Columns are the view's columns that readers would gain and those that would become NULL.
func (p Plan) Columns(to job.Layout) (added, removed []job.ViewColumn) {
	if p.Live == nil {
		return nil, nil
	}
	has := func(list []job.ViewColumn, name string) bool {
		return slices.ContainsFunc(list, func(v job.ViewColumn) bool { return v.Name == name })
	}
	for _, v := range to.View {
		if !has(p.LiveView.View, v.Name) {
			added = append(added, v)
		}
	}
	for _, v := range p.LiveView.View {
		if !has(to.View, v.Name) {
			removed = append(removed, v)
		}
	}
	return added, removed
}
