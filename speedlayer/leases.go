package speedlayer

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/pg"
)

// segmentLeases are the segments that a run holds. Guarded by mu.
type segmentLeases struct {
	*run

	mu   sync.Mutex
	held map[int64]heldSegment
}

type heldSegment struct {
	claim int64
	lost  func() // called once when another worker has the segment
}

func newSegmentLeases(r *run) *segmentLeases {
	return &segmentLeases{run: r, held: map[int64]heldSegment{}}
}

func (l *segmentLeases) add(id, claim int64, lost func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[id] = heldSegment{claim, lost}
}

func (l *segmentLeases) drop(id int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, id)
}

func (l *segmentLeases) snapshot() map[int64]heldSegment {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make(map[int64]heldSegment, len(l.held))
	for id, h := range l.held {
		out[id] = h
	}
	return out
}

var segmentRenewal = pg.Leased{Table: leasedSegment.Table, Columns: "id, claim"}

// renew prolongs what is held and tells the workers whose segment is gone.
func (l *segmentLeases) renew(ctx context.Context) error {
	held := l.snapshot()
	if len(held) == 0 {
		return nil
	}
	ids := make([]int64, 0, len(held))
	for id := range held {
		ids = append(ids, id)
	}
	type row struct{ ID, Claim int64 }
	rows, err := pg.Renew[row](ctx, l.Pool, segmentRenewal, l.Agent, l.config.Lease,
		"r.id = ANY (@ids::bigint[]) AND r.state = 'claimed'", pgx.NamedArgs{"ids": ids})
	if err != nil {
		return err
	}
	for _, r := range rows {
		if held[r.ID].claim == r.Claim {
			delete(held, r.ID)
		}
	}
	for id, h := range held {
		if l.has(id, h.claim) { // it may have been finished meanwhile
			h.lost()
		}
	}
	return nil
}

func (l *segmentLeases) has(id, claim int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, ok := l.held[id]
	return ok && h.claim == claim
}
