package reprocess

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// eventExtended notes a round of a replay that went on behind the frozen end.
const eventExtended = "extended"

// replaying watches the segments. When all are done and much has arrived since, the replay goes on; after a few rounds,
// or when little has, the table is built.
func (w *watch) replaying(ctx context.Context, st *state) (next, error) {
	s, err := w.sample(ctx, st)
	if err != nil {
		return done, err
	}
	if n, err := w.unhealthy(ctx, st, s); n != later || err != nil {
		return n, err
	}
	if st.PausedAt != nil || s.facts == nil || s.verdict.Verdict == job.Unhealthy {
		return later, nil
	}
	if n, err := w.follow(ctx, st, s); n > 0 || err != nil {
		return again, err
	}
	var remaining, arrived int64
	for _, p := range s.positions {
		remaining += p.Remaining
	}
	if remaining > 0 {
		w.awaits = segmentsDone
		return later, nil
	}
	longer := since(s.positions, s.facts)
	arrived = offsets(longer)
	rounds, err := noted(ctx, w.c.Pool, st, eventExtended)
	if err != nil {
		return done, err
	}
	if arrived > w.c.config.ExtendOver && rounds < w.c.config.ExtendRounds {
		return again, w.extend(ctx, st, longer, arrived)
	}
	return again, w.c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		return move(ctx, tx, st, AllRead)
	})
}

func (w *watch) extend(ctx context.Context, st *state, longer []job.Frozen, arrived int64) error {
	return w.c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := fence(ctx, tx, st); err != nil {
			return err
		}
		if err := w.c.Replays.Extend(ctx, tx, st.ref(), longer); err != nil {
			return err
		}
		return addEvent(ctx, tx, st.entry(eventExtended, "%s records arrived since the ranges were frozen", grouped(arrived)))
	})
}

// since are the ranges between the frozen ends and the last stable offsets.
func since(positions []job.Position, facts []job.PartitionFacts) []job.Frozen {
	ends := map[job.Partition]job.Position{}
	for _, p := range positions {
		ends[p.Partition] = p
	}
	var out []job.Frozen
	for _, f := range facts {
		p, ok := ends[f.Partition]
		if ok && f.Err == nil && f.LastStable > p.FrozenEnd {
			out = append(out, job.Frozen{Partition: f.Partition, Range: job.Range{From: p.FrozenEnd, To: f.LastStable}, LeaderEpoch: f.LeaderEpoch})
		}
	}
	return out
}

// buildStep is one repeatable step between the replay and live.
type buildStep struct {
	name  string
	fault string
	run   func(context.Context) error
}

// building fills the version's table, indexes and analyzes it, then hands the positions over to live. A step that is
// noted as done is not done again by another controller.
func (w *watch) building(ctx context.Context, st *state) (next, error) {
	if st.PausedAt != nil {
		_, err := w.sample(ctx, st)
		return later, err
	}
	steps := []buildStep{
		{"fill", FaultDeployFilled, func(ctx context.Context) error {
			return w.c.Replays.Fill(ctx, w.c.Pool, st.ref(), st.schema(), st.layout)
		}},
		{"index", FaultDeployIndexed, func(ctx context.Context) error {
			return w.c.Tables.Index(ctx, w.c.Pool, st.ref(), st.schema(), st.layout)
		}},
		{"analyze", "", func(ctx context.Context) error {
			return w.c.Tables.Analyze(ctx, w.c.Pool, st.ref(), st.schema())
		}},
	}
	if st.layout.Shape == job.Latest {
		steps = slices.Insert(steps, 1, buildStep{"keys", "", func(ctx context.Context) error { return w.c.moved(ctx, st) }})
	}
	err := w.during(ctx, st, func(ctx context.Context) error {
		for _, s := range steps {
			if err := w.c.build(ctx, st, s); err != nil {
				return err
			}
		}
		return nil
	})
	w.movedKnown = false
	if err != nil {
		if a, ok := hopeless(err); ok {
			return w.fail(ctx, st, a)
		}
		return done, w.troubled(ctx, st, "the table is not built yet", err)
	}
	err = w.c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := w.c.Replays.Seal(ctx, tx, st.ref(), st.schema()); err != nil {
			return err
		}
		return move(ctx, tx, st, Built)
	})
	if err != nil {
		return done, w.troubled(ctx, st, "the replay is not sealed yet", err)
	}
	w.c.hit(FaultDeploySealed)
	return again, nil
}

// troubled shows in the status why a step has to be tried again, and returns the error.
func (w *watch) troubled(ctx context.Context, st *state, what string, err error) error {
	if ctx.Err() != nil || pg.Unreachable(err) || errors.Is(err, errLost) {
		return err
	}
	return errors.Join(err, setVerdict(ctx, w.c.Pool, st, Judged{job.Stalled, fmt.Sprintf("%s: %v", what, err)}, false))
}

func (c *Controller) build(ctx context.Context, st *state, s buildStep) error {
	kind := "built." + s.name
	n, err := noted(ctx, c.Pool, st, kind)
	if err != nil || n > 0 {
		return err
	}
	began := c.Now()
	if err := s.run(ctx); err != nil {
		return err
	}
	if s.fault != "" {
		c.hit(s.fault)
	}
	seconds := c.Now().Sub(began).Seconds()
	e := st.entry(kind, "%s took %.1fs", s.name, seconds)
	e.Detail = map[string]float64{"seconds": seconds}
	c.log(st).Info("built", "step", s.name, "seconds", seconds)
	return addEvent(ctx, c.Pool, e)
}

// hopeless says that an error of a step would come again: an error over the data, or a refusal.
func hopeless(err error) (Answer, bool) {
	if a, ok := answerOf(err); ok {
		return a, true
	}
	switch code := pg.Code(err); {
	case code == "" || pg.Unreachable(err) || pg.Retryable(err):
		return Answer{}, false
	case code[:2] == "22" || code[:2] == "23" || code[:2] == "42":
		return Answer{Code: job.ExitUnhealthy, Text: fmt.Sprintf("the table cannot be built: %v", err)}, true
	}
	return Answer{}, false
}

// unhealthy ends a candidate that met a record or a query that will fail for ever, and says what else needs a person.
func (w *watch) unhealthy(ctx context.Context, st *state, s sampled) (next, error) {
	if fatal(s.fault.Kind) {
		return w.fail(ctx, st, Answer{
			Code: faultCode(s.fault.Kind), Text: faultWords(s.at, s.fault),
			Next: fmt.Sprintf("correct the job file, then kappactl deploy FILE; kappactl status %s shows the records", st.Job),
		})
	}
	if !st.open() {
		return later, nil
	}
	code := job.ExitUnhealthy
	if s.fault.Kind != job.FaultNone {
		code = faultCode(s.fault.Kind)
	}
	noted := st.ExitCode != nil && (*st.ExitCode == int(job.ExitGap) || *st.ExitCode == int(job.ExitUnhealthy))
	switch {
	case s.verdict.Verdict == job.Unhealthy && (st.ExitCode == nil || *st.ExitCode != int(code)):
		return w.say(ctx, st, st.State, Answer{Code: code, Text: s.verdict.Reason, Next: w.cure(st, s)})
	case s.verdict.Verdict != job.Unhealthy && s.verdict.Verdict != job.Unknown && noted:
		return again, setState(ctx, w.c.Pool, st, st.State, nil)
	}
	return later, nil
}

// cure is what to run next for a fault.
func (w *watch) cure(st *state, s sampled) string {
	again := fmt.Sprintf("kappactl abort %s %s, then kappactl deploy FILE", st.Job, job.Number(st.Number))
	if s.fault.Kind == job.FaultGap {
		return fmt.Sprintf("kappactl resume %s %s --accept-gap %s:%d-%d, or: %s", st.Job, job.Number(st.Number), s.at, s.fault.From, s.fault.To, again)
	}
	return again
}
