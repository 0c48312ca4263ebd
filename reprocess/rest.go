package reprocess

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// What a version waits for between two passes, besides the tick: true once it has happened. Empty is nothing but the tick.
type awaited string

const (
	// The last segment is done: the table can be built at once.
	segmentsDone awaited = `SELECT NOT EXISTS (SELECT 1 FROM kappactl.segment WHERE job = @job AND number = @number AND state <> 'done')`
	// Workers have taken every partition: whether the version is ready can be told.
	partitionsTaken awaited = `SELECT NOT EXISTS (SELECT 1 FROM kappactl.position
		WHERE job = @job AND number = @number AND (owner IS NULL OR lease < clock_timestamp()))`
)

// looks is how often a rest looks whether what is awaited has happened, and most often.
const (
	looks     = 20
	looksMost = 20 * time.Millisecond
)

// rest waits for the next tick, or less when what w awaits has happened. It says false when ctx ended before. That the
// database is away shows at the next pass.
func (w *watch) rest(ctx context.Context) bool {
	left, step := w.c.config.Tick, max(w.c.config.Tick/looks, looksMost)
	if w.awaits == "" {
		return sleep(ctx, left)
	}
	args := pgx.NamedArgs{"job": w.job, "number": w.number}
	for ; left > 0; left -= step {
		if !sleep(ctx, min(step, left)) {
			return false
		}
		var happened bool
		if err := w.c.Pool.QueryRow(ctx, string(w.awaits), args).Scan(&happened); err == nil && happened {
			return true
		}
	}
	return true
}
