package reprocess

import (
	"context"
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// pause stops the work on a version that readers do not see.
func (c *Controller) pause(ctx context.Context, a actor, ref job.Ref) (string, error) {
	return c.setPaused(ctx, a, ref, true, nil, fmt.Sprintf("%s is paused", ref), fmt.Sprintf("kappactl resume %s %s", ref.Job, ref.Number))
}

// resume lets it go on, behind gaps that a person accepts.
func (c *Controller) resume(ctx context.Context, a actor, ref job.Ref, gaps []Gap) (string, error) {
	text := fmt.Sprintf("%s goes on", ref)
	for i, g := range gaps {
		text += map[bool]string{true: " without ", false: ", "}[i == 0] + g.String()
	}
	return c.setPaused(ctx, a, ref, false, gaps, text, "kappactl status "+string(ref.Job))
}

// acceptGaps moves the version behind the gaps, or refuses one that does not stand.
func (c *Controller) acceptGaps(ctx context.Context, tx *pg.Tx, a actor, st *state, gaps []Gap) error {
	for _, g := range gaps {
		if c.Gaps == nil {
			return refuse(job.ExitUsage, "", "this agent cannot accept gaps")
		}
		stood, err := c.Gaps.AcceptGap(ctx, tx, st.ref(), g.Topic, g.Partition, job.Range{From: g.From, To: g.To}, a.by)
		if err != nil {
			return err
		}
		if !stood {
			return refuse(job.ExitConflict, "kappactl status "+st.Job+"   # names the gap that stands", "%s has no gap %s", st.ref(), g)
		}
		e := st.entry("gap accepted", "%s is lost to %s: it goes on behind it", g, st.ref())
		e.By, e.Detail = a.by, g
		if err := addEvent(ctx, tx, e); err != nil {
			return err
		}
	}
	if len(gaps) == 0 {
		return nil
	}
	return forgetGap(ctx, tx, st.ref())
}

func (c *Controller) setPaused(ctx context.Context, a actor, ref job.Ref, paused bool, gaps []Gap, text, next string) (string, error) {
	verb := Resume
	if paused {
		verb = Pause
	}
	err := c.overRows(ctx, verb, ref, func(tx *pg.Tx) error {
		if _, err := a.begin(ctx, tx, ref.Job); err != nil {
			return err
		}
		st, err := readState(ctx, tx, ref)
		switch {
		case err != nil:
			return err
		case ref.Adopted():
			return refuse(job.ExitConflict, "kappactl status "+st.Job, "%s was adopted: nothing works on it", ref)
		case paused && st.isLive():
			return refuse(job.ExitConflict, "kappactl rollback "+st.Job, "%s is live: readers see it, so it is not paused", ref)
		case !candidate(st.Phase) && st.Phase != job.Standby && (paused || !st.isLive()):
			return refuse(job.ExitConflict, "kappactl status "+st.Job, "%s is %s: there is nothing to pause or resume", ref, st.Phase)
		}
		if err := c.acceptGaps(ctx, tx, a, st, gaps); err != nil {
			return err
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
