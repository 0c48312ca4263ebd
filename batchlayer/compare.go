package batchlayer

import (
	"context"

	"github.com/kappactl/kappactl/batchlayer/generation"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/checks"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// compare compares the generation with what readers would see of the live one up to the same cut: its rows and the epochs
// from it to this one. Nobody writes those any more. Too many keys that differ end the run unless a person accepts them.
func (b *build) compare(ctx context.Context) error {
	settings := b.v.spec.Generations()
	live, err := generation.In(ctx, b.Pool, b.v.Ref, generation.Live)
	if err != nil || live == nil || !settings.Compare {
		return err
	}
	cut, audited := b.number(), b.v.Audited()
	diff, err := checks.Rows(ctx, b.Pool, b.v.Layout,
		b.Serving.SelectGeneration(audited, live.Generation, &cut), b.Serving.SelectGeneration(audited, cut, nil))
	if err != nil {
		return err
	}
	diff.Job, diff.A, diff.B = b.v.Job, b.v.Member(live.Generation), b.v.Member(cut)
	limit, err := b.limit(ctx, settings, live.Generation)
	if err != nil {
		return err
	}
	changed := diff.OnlyA + diff.OnlyB + diff.Changed
	accepted := diff.Share() > limit && b.args.AcceptChanges
	if err := generation.NoteCompared(ctx, b.Pool, b.v.Ref, cut, diff.All(), changed, accepted); err != nil {
		return err
	}
	if diff.Share() <= limit || accepted {
		return nil
	}
	return &ending{
		code: job.ExitChecks, why: reason.BatchChanged(b.v.Ref, cut, diff.All(), changed, diff.Share(), limit),
		kind: ledger.EventBatchFailed, next: command("run", b.v.Job) + " --accept-changes", diff: diff,
	}
}

// limit is the largest share of keys that may differ. Without batch.max_changed it is 0, and all where one of the two holds
// offsets that the other one could not read.
func (b *build) limit(ctx context.Context, settings job.Batch, live int) (float64, error) {
	if settings.MaxChanged != nil {
		return *settings.MaxChanged, nil
	}
	was, err := generation.Ranges(ctx, b.Pool, b.v.Ref, live)
	if err != nil {
		return 0, err
	}
	is, err := generation.Ranges(ctx, b.Pool, b.v.Ref, b.number())
	if err != nil {
		return 0, err
	}
	gaps, err := b.Speed.Gaps(ctx, b.Pool, b.v.Ref)
	if err != nil {
		return 0, err
	}
	if missing(was, gaps) != missing(is, nil) {
		return 1, nil
	}
	return 0, nil
}

// missing counts the offsets of a version's ranges that its results lack: those that were not read, and gaps that commits
// passed over behind them.
func missing(held []generation.Range, gaps []job.PartitionRange) (n int64) {
	ends := map[job.Partition]int64{}
	for _, r := range held {
		ends[r.Partition] = r.To
		for _, u := range r.Unread {
			n += u.Len()
		}
	}
	for _, g := range gaps {
		n += job.Range{From: max(g.From, ends[g.Partition]), To: g.To}.Len()
	}
	return n
}
