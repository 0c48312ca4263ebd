package reprocess

import (
	"context"
	"errors"
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// untilStaged and untilCaughtUp are where a deployment may be asked to stop before its checks.
const (
	untilStaged   = "staged"
	untilCaughtUp = "caught_up"
	untilVerified = "verified"
)

// staged decides where the replay begins, refuses to lose results, makes the table and freezes the ranges.
func (w *watch) staged(ctx context.Context, st *state) (next, error) {
	if st.PausedAt != nil || (st.State == job.Waiting && st.Until == untilStaged) {
		return later, nil
	}
	o, err := w.plan(ctx, st)
	var r *job.Refusal
	switch {
	case ctx.Err() != nil:
		return done, ctx.Err()
	case errors.As(err, &r):
		return w.fail(ctx, st, Answer{Code: r.Code, Text: r.Cause, Next: r.Next})
	case pg.Unreachable(err):
		return done, err
	case err != nil:
		// The brokers do not answer, or the topic is not there yet: both can heal.
		return later, setVerdict(ctx, w.c.Pool, st, Judged{job.Unknown, err.Error()}, false)
	}
	if err := w.c.Tables.Create(ctx, w.c.Pool, st.ref(), st.schema(), st.layout); err != nil {
		if errors.As(err, &r) {
			return w.fail(ctx, st, Answer{Code: r.Code, Text: r.Cause, Next: r.Next})
		}
		return done, err
	}
	w.c.hit(FaultDeployCreated)
	if st.Until == untilStaged && st.State == job.RollingOut {
		return w.say(ctx, st, job.Waiting, Answer{Text: "staged, as asked for", Next: "kappactl deploy FILE"})
	}
	err = w.c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := w.c.Replays.Freeze(ctx, tx, st.ref(), st.schema(), st.layout, o.frozen); err != nil {
			return err
		}
		if err := keepAccepted(ctx, tx, st, o.accepted); err != nil {
			return err
		}
		return move(ctx, tx, st, Frozen)
	})
	if err != nil {
		return done, err
	}
	w.c.hit(FaultDeployFrozen)
	w.c.log(st).Info("replay begins", "partitions", len(o.frozen), "offsets", offsets(o.frozen))
	return again, nil
}

func offsets(frozen []job.Frozen) (n int64) {
	for _, f := range frozen {
		n += f.Len()
	}
	return n
}

// outset is how a replay begins.
type outset struct {
	frozen   []job.Frozen
	accepted string // stands for the loss of history that was accepted, at these very offsets
}

// plan is what staged will replay, after everything that can be refused was.
func (w *watch) plan(ctx context.Context, st *state) (outset, error) {
	if err := viewFits(ctx, w.c.Pool, w.c.Views, st.jobRow(), st.layout, st.options().AllowColumnChange); err != nil {
		return outset{}, err
	}
	limited, cancel := context.WithTimeout(ctx, w.c.config.AskTimeout)
	defer cancel()
	facts, err := w.c.Topics.Topics(limited, st.spec.Source.Topics)
	if err != nil {
		return outset{}, fmt.Errorf("ask the brokers for %v: %w", st.spec.Source.Topics, err)
	}
	for _, t := range facts {
		if t.Compacted && st.layout.Shape != job.Latest {
			return outset{}, compactedRefusal(t)
		}
	}
	frozen, err := ranges(limited, w.c.Topics, &st.spec, facts, w.c.Now())
	if err != nil {
		return outset{}, err
	}
	accepted, err := w.c.coverage(limited, w.c.Pool, st.liveRef(), st.ref(), &st.spec, st.spec.Replay.Start, starts(frozen), st.options().AcceptShorterHistory)
	return outset{frozen: frozen, accepted: accepted}, err
}

func compactedRefusal(t job.TopicFacts) error {
	return refuse(job.ExitUsage, "read a topic without cleanup.policy=compact",
		"topic %s is compacted: a replay sees fewer records than live did, so results that count or list its records would change by themselves; the latest record of each key (serve.key) can be served", t.Name)
}

// liveCovers is where the results of the live version begin. What was adopted may hold results of every record that there
// ever was.
func liveCovers(ctx context.Context, db pg.DB, positions Positions, live job.Ref, begins []Start) ([]Start, error) {
	if live.Adopted() {
		out := make([]Start, len(begins))
		for i, b := range begins {
			out[i] = Start{Partition: b.Partition}
		}
		return out, nil
	}
	p, err := positions.Positions(ctx, db, live)
	return covered(p), err
}

// coverage refuses a candidate by whose flip readers would lose results. start is where its replay is to begin as long as begins
// may still move, else empty. What it returns is the token that stands for the accepted loss from now on.
func (c *Controller) coverage(ctx context.Context, db pg.DB, live *job.Ref, ref job.Ref, spec *job.Spec, start string, begins []Start, accepted string) (string, error) {
	if live == nil || *live == ref {
		return accepted, nil
	}
	positions, err := liveCovers(ctx, db, c.Positions, *live, begins)
	if err != nil {
		return "", err
	}
	liveSpec, layout, err := specOf(ctx, db, *live)
	if err != nil {
		return "", err
	}
	if live.Adopted() {
		_, like, err := specOf(ctx, db, ref)
		if err != nil {
			return "", err
		}
		layout = keyedAs(layout, like)
	}
	now := c.Now()
	q := survey{db: db, topics: c.Topics, log: c.Records, views: c.Views, now: now}
	lost, err := q.compare(ctx, histories{
		live: *live, liveSpec: liveSpec, layout: layout, covered: positions, candidate: spec, begins: begins,
	})
	switch {
	case err != nil:
		return "", err
	case len(lost.Losses) == 0:
		return accepted, nil
	case accepts(accepted, lost.Losses, start, now):
		return Token(lost.Losses), nil
	}
	return "", lost.refusal(*live, ref, start, now)
}

// fence locks the deployment under its claim, so that what the transaction writes is written by its only controller.
func fence(ctx context.Context, tx *pg.Tx, st *state) error {
	held, err := lockDeployment(ctx, tx, st.ID, st.claim, "")
	if err == nil && !held {
		return errLost
	}
	return err
}
