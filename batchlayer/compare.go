package batchlayer

import (
	"cmp"
	"context"
	"slices"

	"github.com/kappactl/kappactl/batchlayer/generation"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/checks"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// compare compares the generation with what readers would see of the live one up to the same cut: its rows and the
// epochs from it to this one. Nobody writes those any more. Too many keys that differ, and then checks of the job that
// do not pass, end the run unless a person accepts that.
func (b *build) compare(ctx context.Context) error {
	live, err := generation.In(ctx, b.Pool, b.v.Ref, generation.Live)
	if err != nil || live == nil || b.row.Accepted { // accepted after it was refused
		return err
	}
	if b.v.spec.Generations().Compare {
		if err := b.differ(ctx, live.Generation); err != nil {
			return err
		}
	}
	return b.check(ctx, live.Generation)
}

func (b *build) differ(ctx context.Context, live int) error {
	cut, audited := b.number(), b.v.Audited()
	diff, err := checks.Rows(ctx, b.Pool, b.v.Layout,
		b.Serving.SelectGeneration(audited, live, &cut), b.Serving.SelectGeneration(audited, cut, nil))
	if err != nil {
		return err
	}
	diff.Job, diff.A, diff.B = b.v.Job, b.v.Member(live), b.v.Member(cut)
	limit, err := b.limit(ctx, b.v.spec.Generations(), live)
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

// snapshotOf selects the rows of a generation and of the table's epochs from it up to another one.
type snapshotOf struct {
	Serving
	generation int
	until      *int // excluded; nil: the generation alone
}

func (s snapshotOf) Select(v job.Version) string { return s.SelectGeneration(v, s.generation, s.until) }

// check runs the checks that gate a flip of versions: candidate is the generation, live what readers see up to its cut.
func (b *build) check(ctx context.Context, live int) error {
	due := checks.In(b.v.spec.Checks, job.CheckBefore)
	if len(due) == 0 {
		return nil
	}
	held, err := generation.Ranges(ctx, b.Pool, b.v.Ref, b.number())
	if err != nil {
		return err
	}
	cut, offsets := b.number(), map[string]int64{}
	for _, r := range held {
		offsets[r.Partition.String()] = r.To
	}
	run := checks.Run{
		Runner:    checks.Runner{Pool: b.Pool, Views: snapshotOf{b.Serving, cut, nil}, Role: b.config.ChecksRole, Now: b.Now},
		Candidate: b.v.Version, Stage: job.CheckBefore, Due: due, Offsets: offsets,
		With:  checks.Counterpart{Name: "live", Version: &b.v.Version, Still: snapshotOf{b.Serving, live, &cut}},
		Names: [2]string{b.v.Member(live), b.v.Member(cut)},
	}
	if err := run.Do(ctx); err != nil {
		return err
	}
	bad := run.Stopping()
	switch {
	case len(bad) == 0:
		return nil
	case b.args.AcceptChanges:
		return generation.NoteAccepted(ctx, b.Pool, b.v.Ref, cut)
	}
	return &ending{
		code: job.ExitChecks, why: reason.BatchChecked(b.v.Ref, cut, checks.Report(bad)), kind: ledger.EventBatchFailed,
		next: command("run", b.v.Job) + " --accept-changes",
		diff: map[string]any{"checks": run.Results, "positions": offsets},
	}
}

// limit is the largest share of keys that may differ. Without batch.max_changed it is 0, and all where one of the two
// holds offsets that the other one could not read.
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
	passed, err := b.Speed.PassedOver(ctx, b.Pool, b.v.Ref)
	if err != nil {
		return 0, err
	}
	if missing(was, append(gaps, passed...)) != missing(is, nil) {
		return 1, nil
	}
	return 0, nil
}

// missing counts the offsets of a version's ranges that its results lack: those that were not read, and gaps that
// commits passed over behind them.
func missing(held []generation.Range, gaps []job.PartitionRange) (n int64) {
	ends, lacking := map[job.Partition]int64{}, unreadable{}
	for _, r := range held {
		ends[r.Partition], lacking[r.Partition] = r.To, slices.Clone(r.Unread)
	}
	for _, g := range gaps {
		lacking[g.Partition] = append(lacking[g.Partition], job.Range{From: max(g.From, ends[g.Partition]), To: g.To})
	}
	for _, ranges := range lacking {
		slices.SortFunc(ranges, func(a, b job.Range) int { return cmp.Compare(a.From, b.From) })
		var counted int64 // up to here
		for _, r := range ranges {
			n += max(0, r.To-max(r.From, counted))
			counted = max(counted, r.To)
		}
	}
	return n
}
