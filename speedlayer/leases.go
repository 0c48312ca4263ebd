package speedlayer

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/pg"
)

// segmentLeases are the segments of a target that a run holds. Guarded by mu.
type segmentLeases struct {
	*run
	target target

	mu   sync.Mutex
	held map[int64]heldSegment
}

type heldSegment struct {
	claim   int64
	reached *atomic.Int64 // about how far it is read; 0: not known
	lost    func()        // called once when another worker has the segment
}

func newSegmentLeases(r *run, t target) *segmentLeases {
	return &segmentLeases{run: r, target: t, held: map[int64]heldSegment{}}
}

func (l *segmentLeases) add(id, claim int64, reached *atomic.Int64, lost func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[id] = heldSegment{claim, reached, lost}
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
	renewal := pg.Leased{Table: l.target.sql("{segment}"), Columns: "id, claim"}
	rows, err := pg.Renew[row](ctx, l.Pool, renewal, l.Agent, l.config.Lease,
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

const sqlSegmentReached = `
UPDATE {segment} AS g SET reached = r.reached
  FROM unnest(@ids::bigint[], @claims::bigint[], @reached::bigint[]) AS r (id, claim, reached)
  JOIN (SELECT id FROM {segment} WHERE id = ANY (@ids::bigint[]) ORDER BY id FOR UPDATE SKIP LOCKED) AS free ON free.id = r.id
 WHERE g.id = r.id AND g.claim = r.claim AND g.state = 'claimed' AND g.reached IS DISTINCT FROM r.reached`

// note writes how far each segment has been read, for status and watch.
func (l *segmentLeases) note(ctx context.Context) error {
	var ids, claims, reached []int64
	for id, h := range l.snapshot() {
		if at := h.reached.Load(); at > 0 {
			ids, claims, reached = append(ids, id), append(claims, h.claim), append(reached, at)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	args := pgx.NamedArgs{"ids": ids, "claims": claims, "reached": reached}
	if _, err := l.Pool.Exec(ctx, l.target.sql(sqlSegmentReached), args); err != nil {
		return fmt.Errorf("note how far segments are read: %w", err)
	}
	return nil
}

func (l *segmentLeases) has(id, claim int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, ok := l.held[id]
	return ok && h.claim == claim
}
