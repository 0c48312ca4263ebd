package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess"
)

// roomRule says when a deploy is refused for want of disk: estimates may be wrong, so that it takes a lot.
type roomRule struct {
	offsets int64         // of fewer to replay nothing is asked
	least   int64         // bytes; what is estimated to take less is never refused
	times   int64         // the estimate is more than so many times what is free
	within  time.Duration // to find out; what takes longer stays unknown
}

func deployRoom() roomRule {
	return roomRule{offsets: 1_000_000, least: 1 << 30, times: 2, within: 30 * time.Second}
}

// The largest row that a record is thought to leave, for telling without a sample that there is room: so many bytes, and so many
// times the record's.
const (
	roomRow    = 512
	roomRecord = 8
)

// plenty says that whatever the query makes of the records will fit.
func (roomRule) plenty(total amount, free int64) bool {
	return total.records*roomRow+total.bytes*roomRecord < float64(free)
}

// refusal is why a deploy of what r estimates is refused; nil when it is not. The write-ahead log does not count: checkpoints free it.
func (rule roomRule) refusal(r planReplay, free int64) error {
	if r.Offsets < rule.offsets || r.DiskBytes == nil || r.StagingBytes == nil {
		return nil
	}
	needs := *r.DiskBytes + *r.StagingBytes
	if needs < rule.least || needs/rule.times <= free {
		return nil
	}
	return &job.Refusal{
		Code:  job.ExitGap,
		Cause: fmt.Sprintf("PostgreSQL's disk has %s free, and the new table and what its replay stages take about %s: the replay would fill it up", render.Bytes(free), render.Bytes(needs)),
		Next:  "make room (kappactl retire, a larger disk), or kappactl deploy FILE --ignore-disk",
	}
}

// room refuses what would fill PostgreSQL's disk, before anything is written. It only measures when the disk can be seen from here and
// the replay is large beside what it has left; what it cannot find out is no reason to refuse.
func (o deployOptions) room(ctx context.Context, cl *client, c *compiled, s reprocess.Staging, rule roomRule) error {
	limited, cancel := context.WithTimeout(ctx, rule.within)
	defer cancel()
	err := o.lacksRoom(limited, cl, c, s, rule)
	var r *job.Refusal
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &r) && r.Code == job.ExitGap:
		return r
	}
	return nil // staging meets whatever else is wrong, and says it
}

func (o deployOptions) lacksRoom(ctx context.Context, cl *client, c *compiled, s reprocess.Staging, rule roomRule) error {
	folder, why, err := pg.DataFolder(ctx, cl.pool)
	if err != nil || why != "" {
		return err
	}
	free, err := o.sys.free(folder)
	if err != nil {
		return err
	}
	admin, brokers, err := cl.admin(ctx)
	if err != nil {
		return err
	}
	defer admin.Close()
	p, err := cl.store.Ahead(ctx, s, admin, o.sys.Now())
	if err != nil || p.Offsets() < rule.offsets {
		return nil //nolint:nilerr // a range that cannot be replayed is refused by those who replay it
	}
	records, err := newSampling(ctx, o.app, p, brokers)
	if err != nil {
		return err
	}
	defer records.Close()
	if rule.plenty(extend(p.Frozen, records.oldest), free) {
		return nil
	}
	r := newPlanReplay(c, p)
	if err := records.measure(ctx, cl, c, &r); err != nil {
		return err
	}
	return rule.refusal(r, free)
}
