package plan

import (
	"context"
	"fmt"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/reprocess/readiness"
)

// Keeping decides which rows of a version expire.
type Keeping struct {
	Spec   *job.Spec
	Layout job.Layout
}

// byRecord reports that rows expire by the time of their records, so that older records of what is kept do not matter.
func (k Keeping) byRecord() bool {
	return k.Spec.Serve.Keep > 0 && k.Layout.Keep != nil && k.Layout.Keep.ByRecord
}

// Kept is where the time begins that two versions keep (serve.keep), by partition. A partition of which the log holds
// nothing older than that time, and no longer all of it, is not among them: what it lost may be of that time. It is nil
// when one of the two keeps everything, or by another time than that of the records.
func Kept(ctx context.Context, brokers Brokers, live, candidate Keeping, now time.Time) (map[job.Partition]int64,
	error,
) {
	if !live.byRecord() || !candidate.byRecord() {
		return nil, nil //nolint:nilnil // the time of the records does not decide
	}
	topics := candidate.Spec.Source.Topics
	kept, err := offsetsAt(ctx, brokers, topics, now.Add(-min(live.Spec.Serve.Keep, candidate.Spec.Serve.Keep)))
	if err != nil {
		return nil, err
	}
	log, err := brokers.Offsets(ctx, topics)
	if err != nil {
		return nil, fmt.Errorf("offsets of the start of the log: %w", err)
	}
	for _, p := range log {
		if p.Err != nil {
			return nil, fmt.Errorf("where the log of %s begins: %w", p.Partition, p.Err)
		}
		if p.Start > 0 && kept[p.Partition] <= p.Start {
			delete(kept, p.Partition)
		}
	}
	return kept, nil
}

// expires reports that both versions expire their rows.
func (c histories) expires() bool { return c.liveSpec.Serve.Keep > 0 && c.candidate.Serve.Keep > 0 }

// unexpired counts the rows of live that both versions keep, by a time that need not be that of the records. Without
// such rows nothing is lost.
func (q Survey) unexpired(ctx context.Context, c histories, lost *readiness.Lost) error {
	keep := c.layout.Keep
	if keep == nil || q.Serving == nil {
		return nil
	}
	by := job.Keep{Column: keep.Column, Type: keep.Type, For: min(c.liveSpec.Serve.Keep, c.candidate.Serve.Keep)}
	n, _, err := q.count(ctx, c, fmt.Sprintf("(q.%s < %s) IS NOT TRUE", pg.Ident(by.Column), by.Cutoff()), q.Now)
	switch {
	case err != nil:
		return err
	case n != nil && *n == 0:
		*lost = readiness.Lost{}
	default:
		lost.Kept, lost.KeptBy = n, by.Column
	}
	return nil
}
