package batchlayer

import (
	"context"
	"fmt"
	"slices"

	"github.com/kappactl/kappactl/batchlayer/generation"
	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// unreadable are the ranges that a generation passes over, by partition.
type unreadable map[job.Partition][]job.Range

// within are the ranges of one partition up to a cut.
func (u unreadable) within(c job.Frozen) []job.Range {
	var out []job.Range
	for _, r := range u[c.Partition] {
		r.To = min(r.To, c.To)
		if r.Len() > 0 {
			out = append(out, r)
		}
	}
	return out
}

// unread finds the ranges that a generation needs and neither log nor archive has. Gaps that were accepted for the
// version are passed over where the archive does not have them, what cannot be processed always; another hole is a
// refusal. A generation that goes on from another one passes over what that one did.
func (r *Runner) unread(ctx context.Context, v version, base *generation.Row) (unreadable, error) {
	out := unreadable{}
	positions, err := r.Speed.Positions(ctx, r.Pool, v.Ref)
	if err != nil {
		return out, err
	}
	gaps, err := r.Speed.Gaps(ctx, r.Pool, v.Ref)
	if err != nil {
		return out, err
	}
	passed, err := r.Speed.PassedOver(ctx, r.Pool, v.Ref)
	if err != nil {
		return out, err
	}
	starts, err := r.starts(ctx, v, positions)
	if err != nil {
		return out, err
	}
	from := map[job.Partition]int64{}
	if base != nil {
		held, err := generation.Ranges(ctx, r.Pool, v.Ref, base.Generation)
		if err != nil {
			return out, err
		}
		for _, h := range held {
			from[h.Partition], out[h.Partition] = h.To, h.Unread
		}
	}
	for _, p := range positions {
		need := job.Range{From: max(p.CoversFrom, from[p.Partition]), To: p.Next}
		holes := slices.Clone(out[p.Partition])
		accepted := of(gaps, p.Partition)
		for _, skip := range append(of(passed, p.Partition), job.Range{From: need.To, To: need.To}) {
			skip.From, skip.To = min(max(skip.From, need.From), need.To), min(skip.To, need.To)
			before, err := r.holes(ctx, v, p.Partition, job.Range{From: need.From, To: skip.From}, starts[p.Partition], accepted)
			if err != nil {
				return out, err
			}
			if holes = append(holes, before...); skip.Len() > 0 {
				holes = append(holes, skip)
			}
			need.From = max(need.From, skip.To)
		}
		out[p.Partition] = holes
	}
	return out, nil
}

// of are the ranges of one partition.
func of(ranges []job.PartitionRange, p job.Partition) (out []job.Range) {
	for _, r := range ranges {
		if r.Partition == p {
			out = append(out, r.Range)
		}
	}
	return out
}

// starts are the first offsets of the partitions' logs; where the brokers are not to be read, where nothing of them is.
func (r *Runner) starts(ctx context.Context, v version, positions []job.Position) (map[job.Partition]int64, error) {
	out := map[job.Partition]int64{}
	if v.policy() == archive.ArchiveOnly {
		for _, p := range positions {
			out[p.Partition] = p.Next
		}
		return out, nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.config.AskTimeout)
	defer cancel()
	facts, err := r.Brokers.Offsets(ctx, v.spec.Source.Topics)
	if err != nil {
		return nil, fmt.Errorf("ask the brokers where the logs of %s begin: %w", v.Ref, err)
	}
	for _, f := range facts {
		if f.Err != nil {
			return nil, fmt.Errorf("ask the brokers where the log of %s begins: %w", f.Partition, f.Err)
		}
		out[f.Partition] = f.Start
	}
	for _, p := range positions { // a topic that is gone or was made again: only the archive may have it
		if _, there := out[p.Partition]; !there {
			out[p.Partition] = p.Next
		}
	}
	return out, nil
}

// holes are the parts of a range that are passed over: gaps that were accepted and that the archive does not have. A
// part that was not accepted and that nothing holds is a refusal.
func (r *Runner) holes(ctx context.Context, v version, p job.Partition, need job.Range, start int64,
	accepted []job.Range,
) (out []job.Range, err error) {
	store, archived := archive.Store{}, v.policy() != archive.LogOnly
	for at := need.From; at < need.To; {
		end := at
		if archived {
			if end, err = store.Whole(ctx, r.Pool, p, at); err != nil {
				return nil, err
			}
		}
		gap := firstBehind(accepted, at)
		switch {
		case end > at:
			at = end
		case gap.Len() > 0 && gap.From <= at:
			hole := job.Range{From: at, To: min(gap.To, need.To)}
			if archived && at < start {
				if bounds, err := store.Bounds(ctx, r.Pool, p, at); err == nil && bounds.From > at {
					hole.To = min(hole.To, bounds.From)
				}
			}
			out, at = append(out, hole), hole.To
		case at >= start && gap.Len() > 0:
			at = min(gap.From, need.To) // the log holds what lies before it
		case at >= start:
			return out, nil
		default:
			missing := job.Range{From: at, To: min(start, need.To)}
			if gap.Len() > 0 {
				missing.To = min(missing.To, gap.From)
			}
			if bounds, err := store.Bounds(ctx, r.Pool, p, at); err == nil && bounds.From > at {
				missing.To = min(missing.To, bounds.From)
			}
			return nil, ledger.RefuseFor(job.ExitGap, "kappactl archive status; kappactl doctor "+string(v.Job),
				reason.BatchMissing(p, missing))
		}
	}
	return out, nil
}

// firstBehind is the first of sorted ranges that ends behind an offset; empty when none does.
func firstBehind(ranges []job.Range, at int64) job.Range {
	for _, r := range ranges {
		if r.To > at {
			return r
		}
	}
	return job.Range{}
}

// deletesWhole refuses a computation from scratch whose archive may lack deletes.
func (r *Runner) deletesWhole(ctx context.Context, v version) error {
	if v.policy() == archive.LogOnly {
		return nil
	}
	lost, err := archive.Store{}.LostDeletes(ctx, r.Pool, v.spec.Source.Topics)
	if err != nil || len(lost) == 0 {
		return err
	}
	next := fmt.Sprintf("kappactl batch run %s %s --full --accept-lost-deletes", v.Job, v.Number)
	return ledger.RefuseFor(job.ExitGap, next, reason.ArchiveLostDeletes(job.Partition{
		Topic: lost[0].Topic,
		ID:    lost[0].Partition,
	}, lost[0].Range))
}
