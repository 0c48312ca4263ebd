package estimate

import (
	"context"
	"fmt"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/query"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess/plan"
)

// Room is when a deploy is refused for want of disk. Estimates may be wrong, so it takes a lot.
type Room struct {
	Offsets int64         // replays of fewer offsets are not measured
	Least   int64         // bytes; a replay that is estimated to take less is never refused
	Times   int64         // a replay is refused when its estimate is more than this many times the free space
	Within  time.Duration // how long measuring may take; what takes longer stays unknown
}

// DefaultRoom is the rule of deploy.
func DefaultRoom() Room {
	return Room{Offsets: 1_000_000, Least: 1 << 30, Times: 2, Within: 30 * time.Second}
}

// The largest row that a record is expected to leave, to tell without a sample that there is room: roomRow bytes, and
// roomRecord times the bytes of the record.
const (
	roomRow    = 512
	roomRecord = 8
)

// plenty reports whether the rows will fit, whatever the query makes of the records.
func (Room) plenty(total amount, free int64) bool {
	return total.records*roomRow+total.bytes*roomRecord < float64(free)
}

// Refusal returns why a deploy that costs r is refused, nil when it is not. The write-ahead log does not count:
// checkpoints free it.
func (rule Room) Refusal(r Replay, free int64) error {
	if r.Offsets < rule.Offsets || r.DiskBytes == nil || r.StagingBytes == nil {
		return nil
	}
	needs := *r.DiskBytes + *r.StagingBytes
	if needs < rule.Least || needs/rule.Times <= free {
		return nil
	}
	return &job.Refusal{
		Code: job.ExitGap,
		Cause: fmt.Sprintf("PostgreSQL's disk has %s free, and the new table and what its replay stages take about %s: the "+
			"replay would fill it up", render.Bytes(free), render.Bytes(needs)),
		Next: "make room (kappactl retire, a larger disk), or kappactl deploy FILE --ignore-disk",
	}
}

// Judge measures what is replayed when that is large beside the free space, and returns a *job.Refusal when it does not
// fit.
func (rule Room) Judge(ctx context.Context, from Sources, spec *job.Spec, q *query.Compiled, p plan.Deploy,
	free int64,
) error {
	if p.Offsets() < rule.Offsets {
		return nil
	}
	records, err := NewSampling(ctx, from, p)
	if err != nil {
		return err
	}
	defer records.Close()
	if rule.plenty(extend(p.Frozen, records.oldest), free) {
		return nil
	}
	r := New(spec, p)
	if err := records.Measure(ctx, spec, q, &r); err != nil {
		return err
	}
	return rule.Refusal(r, free)
}
