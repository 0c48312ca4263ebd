package reprocess

import (
	"context"
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// pause stops the work on a version that readers do not see.
func (c *Controller) pause(ctx context.Context, a actor, ref job.Ref) (string, error) {
	return c.setPaused(ctx, a, ref, true, fmt.Sprintf("%s is paused", ref), fmt.Sprintf("kappactl resume %s %s", ref.Job, ref.Number))
}

// resume lets it go on.
func (c *Controller) resume(ctx context.Context, a actor, ref job.Ref) (string, error) {
	return c.setPaused(ctx, a, ref, false, fmt.Sprintf("%s goes on", ref), "kappactl status "+string(ref.Job))
}

func (c *Controller) setPaused(ctx context.Context, a actor, ref job.Ref, paused bool, text, next string) (string, error) {
	err := c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := lockTimeout(ctx, tx, slowLock); err != nil {
			return err
		}
		if _, err := lockJob(ctx, tx, ref.Job); err != nil {
			return err
		}
		if err := a.fence(ctx, tx); err != nil {
			return err
		}
		st, err := readState(ctx, tx, ref)
		switch {
		case err != nil:
			return err
		case paused && st.isLive():
			return refuse(job.ExitConflict, "kappactl rollback "+st.Job, "%s is live: readers see it, so it is not paused", ref)
		case !candidate(st.Phase) && st.Phase != job.Standby && (paused || !st.isLive()):
			return refuse(job.ExitConflict, "kappactl status "+st.Job, "%s is %s: there is nothing to pause or resume", ref, st.Phase)
		}
		changed, err := setPaused(ctx, tx, ref, paused)
		if err != nil {
			return err
		}
		if changed {
			e := st.entry("pause", "%s", text)
			e.By = a.by
			if err := addEvent(ctx, tx, e); err != nil {
				return err
			}
		}
		return a.answer(ctx, tx, text, next)
	})
	return text, err
}
