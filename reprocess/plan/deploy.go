package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/readiness"
)

// Deploy holds the effects of deploying a file, by the rules that deploy follows. Nothing is written.
type Deploy struct {
	Staged             // what Stage would do; Deployment means nothing
	Phase    job.Phase // of the version now, staged when it would be new
	Live     *job.Ref
	LiveSpec *job.Spec      // of the live version, else nil
	LiveView job.Layout     // of the live version
	LiveFile string         // the text of its job file
	Refusals []error        // why deploy would refuse, each a *job.Refusal
	Lost     readiness.Lost // results that readers would lose
	Frozen   []job.Frozen   // the ranges to replay
	Topics   []job.TopicFacts
	Warnings []reason.Reason
	// Rate is how many records a second one worker got through in the job's newest replay; nil when there was none.
	Rate *float64

	ages readiness.Ages
}

// Sources are what a plan asks.
type Sources struct {
	Brokers   Brokers
	History   History // of the job; nil: the brokers alone
	Positions Positions
}

func (s Sources) history() Brokers {
	if s.History != nil {
		return s.History
	}
	return s.Brokers
}

// Plan stages in a transaction that is rolled back, and freezes without writing.
func (s *Store) Plan(ctx context.Context, in Staging, from Sources, now time.Time) (Deploy, error) {
	var p Deploy
	refused := func(err error) error {
		var r *job.Refusal
		if errors.As(err, &r) {
			p.Refusals = append(p.Refusals, r)
			return nil
		}
		return err
	}
	err := s.pool.Try(ctx, true, func(tx *pg.Tx) error { return s.planStage(ctx, tx, in, &p) })
	if err = refused(err); err != nil && !errors.Is(err, pg.ErrDryRun) {
		return Deploy{}, fmt.Errorf("plan %s: %w", in.Spec.Job, err)
	}
	p.Job = in.Spec.Job
	p.warn(viewAggregates(p, in))
	if p.Rate, err = ledger.ReplayRate(ctx, s.pool, in.Spec.Job); err != nil {
		return Deploy{}, err
	}
	if p.Nothing || p.FlipOnly || p.Resumed {
		return p, nil
	}
	if p.Topics, err = from.history().Topics(ctx, in.Spec.Source.Topics); err != nil {
		return Deploy{}, fmt.Errorf("ask the brokers for %v: %w", in.Spec.Source.Topics, err)
	}
	for _, t := range p.Topics {
		if t.Compacted && !in.Layout.TakesCompacted() {
			p.Refusals = append(p.Refusals, compactedRefusal(t))
		}
	}
	if p.Frozen, err = ranges(ctx, from.history(), in.Spec, p.Topics, now); refused(err) != nil {
		return Deploy{}, err
	}
	if p.Frozen != nil {
		p.warn(nothingToReplay(in.Spec.Replay.Start, p.Topics, p.Frozen))
	}
	if p.ages, err = AskAges(ctx, from.Brokers, from.History, in.Spec.Source.Topics, now); err != nil {
		return Deploy{}, err
	}
	return p, s.planCoverage(ctx, in, from, now, &p)
}

// warn adds a warning; zero adds none.
func (p *Deploy) warn(r reason.Reason) {
	if !r.IsZero() {
		p.Warnings = append(p.Warnings, r)
	}
}

// viewAggregates warns of a view whose joins become dear: it was of one table and becomes one of mode lambda, which has
// a GROUP BY.
func viewAggregates(p Deploy, in Staging) reason.Reason {
	before := p.Live == nil || p.LiveView.Lambda
	if before || p.Nothing || !in.Layout.Lambda || in.Layout.Shape == job.Rows || len(in.Layout.Keys) == 0 {
		return reason.Reason{}
	}
	return reason.ViewAggregates(in.Spec.Serve.View)
}

// Ahead holds what a deploy would replay, without a staging: of a Deploy, the ranges, topics and warnings about them
// only. Nothing is ahead when the job has a version of this hash that has not ended.
func (s *Store) Ahead(ctx context.Context, in Staging, brokers Brokers, now time.Time) (Deploy, error) {
	known, err := ledger.HashKnown(ctx, s.pool, in.Spec.Job, in.Hash)
	if err != nil || known {
		return Deploy{}, err
	}
	p := Deploy{}
	if p.Topics, err = brokers.Topics(ctx, in.Spec.Source.Topics); err != nil {
		return Deploy{}, fmt.Errorf("ask the brokers for %v: %w", in.Spec.Source.Topics, err)
	}
	if p.Frozen, err = ranges(ctx, brokers, in.Spec, p.Topics, now); err != nil {
		return p, err
	}
	p.warn(nothingToReplay(in.Spec.Replay.Start, p.Topics, p.Frozen))
	return p, nil
}

// planStage stages and reads what is live.
func (s *Store) planStage(ctx context.Context, tx *pg.Tx, in Staging, p *Deploy) error {
	j, err := lockJobFor(ctx, tx, in)
	if err != nil {
		return err
	}
	if j.Live != nil {
		live := job.Ref{Job: in.Spec.Job, Number: job.Number(*j.Live)}
		if p.LiveSpec, p.LiveView, err = ledger.ReadSpec(ctx, tx, live); err != nil {
			return err
		}
		if p.LiveFile, err = ledger.ReadFile(ctx, tx, live); err != nil {
			return err
		}
		p.Live = &live
	}
	if err := checkView(ctx, tx, in, j); err != nil {
		return err
	}
	if err := ledger.OneArchive(ctx, tx, in.Spec); err != nil {
		return err
	}
	if p.Staged, err = stage(ctx, tx, in, j); err != nil {
		return err
	}
	v, err := ledger.ReadVersion(ctx, tx, job.Ref{Job: p.Job, Number: p.Number})
	p.Phase = v.Phase
	return err
}

// planCoverage compares what the version would cover with what live covers.
func (s *Store) planCoverage(ctx context.Context, in Staging, from Sources, now time.Time, p *Deploy) error {
	if p.Live == nil || p.Frozen == nil {
		return nil
	}
	q := Survey{DB: s.pool, Brokers: from.history(), Positions: from.Positions, Serving: in.Serving, Now: now}
	covers, err := q.liveCovers(ctx, *p.Live, starts(p.Frozen))
	if err != nil {
		return err
	}
	layout := p.LiveView
	if p.Live.Adopted() {
		layout = layout.KeyedAs(in.Layout)
	}
	p.Lost, err = q.compare(ctx, histories{
		live: *p.Live, liveSpec: p.LiveSpec, layout: layout, covered: covers, candidate: in.Spec, begins: starts(p.Frozen),
		to: in.Layout,
	})
	if err != nil || readiness.Accepts(in.AcceptShorterHistory, p.Lost.Losses, in.Spec.Replay.Start, now) {
		return err
	}
	ref := job.Ref{Job: in.Spec.Job, Number: p.Number}
	if err := lossRefusal(p.Lost, *p.Live, ref, in.Spec.Replay.Start, now); err != nil {
		p.Refusals = append(p.Refusals, err)
	}
	return nil
}

// Segments is in how many segments the ranges would be replayed.
func (p Deploy) Segments() int {
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
func (p Deploy) Offsets() int64 {
	n := int64(0)
	for _, f := range p.Frozen {
		n += f.Len()
	}
	return n
}

// Archived is how many of the offsets are read from the archive.
func (p Deploy) Archived() int64 {
	n := int64(0)
	for _, f := range p.Frozen {
		n += p.ages.Archived(f.Partition, f.Range)
	}
	return n
}

// DeletesFrom is when retention may begin to delete what is replayed of a topic; nil when it does not, or that is not
// known.
func (p Deploy) DeletesFrom(topic string) *time.Time {
	return p.sooner(topic, func(f job.Frozen) *time.Time { return p.ages.Deadline(f.Partition, f.From) })
}

// Overtaken is when retention may delete what a replay that takes so many seconds has not read of a topic, or has only
// just; nil when it has time.
func (p Deploy) Overtaken(topic string, seconds float64) *time.Time {
	return p.sooner(topic, func(f job.Frozen) *time.Time { return p.ages.Overtaken(f, readiness.Seconds(seconds)) })
}

func (p Deploy) sooner(topic string, of func(job.Frozen) *time.Time) *time.Time {
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
func (p Deploy) Columns(to job.Layout) (added, removed []job.ViewColumn) {
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
