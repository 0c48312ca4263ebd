package speedlayer

import (
	"context"
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// beforeThis counts the replays that come before that of version v in the queue for the server's budget: those that
// were frozen earlier and have a segment that a worker may read. One that is paused, that waits for a person, that is
// being built or that only agents of another release can run takes no place. Nobody holds a place, so there is none to
// free when an agent dies: every agent comes to the same order by itself.
const beforeThis = `(SELECT count(*) FROM kappactl.version o
		WHERE o.phase = 'replaying' AND o.paused_at IS NULL AND o.dialect = v.dialect
		  AND (coalesce(o.frozen_at, o.created_at), o.job, o.number) < (coalesce(v.frozen_at, v.created_at), v.job, v.number)
		  AND EXISTS (SELECT 1 FROM kappactl.segment g WHERE g.job = o.job AND g.number = o.number AND g.state IN ('open', 'claimed')))`

// Before is how many replays of the server come before that of the version.
func (Store) Before(ctx context.Context, db pg.DB, ref job.Ref) (int, error) {
	var n int
	err := db.QueryRow(ctx, `SELECT coalesce((SELECT `+beforeThis+` FROM kappactl.version v WHERE job = @job AND number = @number), 0)`,
		refArgs(ref)).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count the replays before %s: %w", ref, err)
	}
	return n, nil
}
