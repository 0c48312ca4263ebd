package reprocess

import (
	"context"
	"errors"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// pause stops the work on a version that readers do not see.
func (c *Controller) pause(ctx context.Context, a ledger.Actor, ref job.Ref, args ledger.Args) error {
	return c.overRows(ctx, ledger.Pause, ref, args, func(tx *pg.Tx) error {
		st, err := pausable(ctx, tx, a, ref, ledger.Pause)
		if err != nil {
			return err
		}
		return setPaused(ctx, tx, a, st, true, reason.VersionPaused(ref), command("resume", ref))
	})
}

// resume lets a version continue: behind gaps that a person accepts, else with what a fault stopped.
func (c *Controller) resume(ctx context.Context, a ledger.Actor, ref job.Ref, args ledger.Args) error {
	return c.overRows(ctx, ledger.Resume, ref, args, func(tx *pg.Tx) error {
		st, err := pausable(ctx, tx, a, ref, ledger.Resume)
		if err != nil {
			return err
		}
		if err := c.acceptGaps(ctx, tx, a, st, args.AcceptGap); err != nil {
			return err
		}
		answer := reason.Resumed(ref, gapTexts(args.AcceptGap))
		if len(args.AcceptGap) == 0 {
			retried, err := c.retry(ctx, tx, a, st)
			switch {
			case err != nil:
				return err
			case !retried.IsZero():
				answer = retried
			case st.PausedAt == nil && st.Verdict == job.Unhealthy:
				return ledger.RefuseFor(job.ExitUnhealthy, "kappactl status "+st.Job, reason.NothingToResume(ref, st.Reason))
			case st.PausedAt == nil:
				answer = reason.NotPaused(ref)
			}
		}
		return setPaused(ctx, tx, a, st, false, answer, "kappactl status "+st.Job)
	})
}

// pausable locks the job and reads the version; what may not be paused or resumed is refused.
func pausable(ctx context.Context, tx *pg.Tx, a ledger.Actor, ref job.Ref, verb ledger.Verb) (*ledger.State, error) {
	if _, err := a.Begin(ctx, tx, ref.Job); err != nil {
		return nil, err
	}
	st, err := ledger.ReadState(ctx, tx, ref)
	pause, status := verb == ledger.Pause, "kappactl status "+string(ref.Job)
	switch {
	case err != nil:
		return nil, err
	case ref.Adopted():
		return nil, ledger.RefuseFor(job.ExitConflict, status, reason.AdoptedIdle(ref))
	case pause && st.IsArm():
		return nil, st.RefuseArm()
	case pause && st.IsLive():
		return nil, ledger.RefuseFor(job.ExitConflict, st.RollbackCommand(), reason.IsLive(ref))
	case !ledger.Candidate(st.Phase) && st.Phase != job.Standby && (pause || !st.IsLive()):
		return nil, ledger.RefuseFor(job.ExitConflict, status, reason.NothingToPause(ref, st.Phase))
	}
	return st, nil
}

// setPaused pauses or resumes the version, notes it when that changes anything, and answers.
func setPaused(ctx context.Context, tx *pg.Tx, a ledger.Actor, st *ledger.State, paused bool, answer reason.Reason,
	next string,
) error {
	changed, err := ledger.SetPaused(ctx, tx, st.Ref(), paused)
	if err != nil {
		return err
	}
	if changed {
		e := st.Entry(ledger.EventPause, answer)
		e.By, e.Role = a.By, a.Role
		if err := ledger.AddEvent(ctx, tx, e); err != nil {
			return err
		}
	}
	return a.Answer(ctx, tx, answer, next)
}

func gapTexts(gaps []ledger.Gap) []string {
	var out []string
	for _, g := range gaps {
		out = append(out, g.String())
	}
	return out
}

// acceptGaps moves the version behind the gaps, or refuses one that it does not have.
func (c *Controller) acceptGaps(ctx context.Context, tx *pg.Tx, a ledger.Actor, st *ledger.State,
	gaps []ledger.Gap,
) error {
	for _, g := range gaps {
		stood, err := c.Speed.AcceptGap(ctx, tx, st.Ref(), g.Topic, g.Partition, job.Range{From: g.From, To: g.To}, a.By)
		if err != nil {
			return err
		}
		if !stood {
			return ledger.RefuseFor(job.ExitConflict, "kappactl status "+st.Job+"   # names its gap",
				reason.NoSuchGap(st.Ref(), g.String()))
		}
		e := st.Entry(ledger.EventGapAccepted, reason.GapAccepted(st.Ref(), g.String()))
		e.By, e.Role, e.Detail = a.By, a.Role, g
		if err := ledger.AddEvent(ctx, tx, e); err != nil {
			return err
		}
	}
	if len(gaps) == 0 {
		return nil
	}
	return ledger.ForgetGap(ctx, tx, st.Ref())
}

// retry lets what a fault has stopped be tried again, and returns the answer; zero when there was none.
func (c *Controller) retry(ctx context.Context, tx *pg.Tx, a ledger.Actor, st *ledger.State) (reason.Reason, error) {
	places, err := c.Speed.Retry(ctx, tx, st.Ref())
	if err != nil || len(places) == 0 {
		return reason.Reason{}, err
	}
	retried := reason.Retried(st.Ref(), places)
	e := st.Entry(ledger.EventRetry, retried)
	e.By, e.Role = a.By, a.Role
	return retried, errors.Join(ledger.AddEvent(ctx, tx, e), ledger.ForgetGap(ctx, tx, st.Ref()))
}
