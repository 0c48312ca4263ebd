package reprocess

import (
	"context"
	"fmt"
	"slices"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/readiness"
	"github.com/kappactl/kappactl/reprocess/sampling"
)

// replaying watches the segments. When all are done and much has arrived since, the replay goes on; after a few rounds,
// or when little has, the table is built.
func (w *watch) replaying(ctx context.Context, st *ledger.State) (next, error) {
	s, err := w.samples.Sample(ctx, st)
	if err != nil {
		return done, err
	}
	if n, err := w.unhealthy(ctx, st, s); n != later || err != nil {
		return n, err
	}
	if st.PausedAt != nil || s.Facts == nil || s.Verdict.Verdict == job.Unhealthy {
		return later, nil
	}
	if n, err := w.samples.Follow(ctx, st, s); n > 0 || err != nil {
		return again, err
	}
	var remaining, arrived int64
	for _, p := range s.Positions {
		remaining += p.Remaining
	}
	if remaining > 0 {
		w.awaits = ledger.SegmentsDone
		return later, nil
	}
	longer := readiness.Since(s.Positions, s.Facts)
	arrived = offsets(longer)
	rounds, err := ledger.CountEvents(ctx, w.c.Pool, st, ledger.EventExtended)
	if err != nil {
		return done, err
	}
	if arrived > w.c.config.ExtendOver && st.Spec.Replay.Source != job.SourceArchive && rounds < w.c.config.ExtendRounds {
		return again, w.extend(ctx, st, longer, arrived)
	}
	return again, w.c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		return ledger.Move(ctx, tx, st, ledger.AllRead)
	})
}

func (w *watch) extend(ctx context.Context, st *ledger.State, longer []job.Frozen, arrived int64) error {
	return w.c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := ledger.Fence(ctx, tx, st); err != nil {
			return err
		}
		if err := w.work.Extend(ctx, tx, st.Ref(), longer); err != nil {
			return err
		}
		return ledger.AddEvent(ctx, tx, st.Entry(ledger.EventExtended, reason.ReplayExtended(arrived)))
	})
}

// buildStep is one repeatable step between the replay and live.
type buildStep struct {
	name  string
	kind  ledger.EventKind
	fault string
	run   func(context.Context) error
}

// building fills the version's table, indexes and analyzes it, then hands the positions over to live. A step that is
// noted as done is not done again by another controller.
func (w *watch) building(ctx context.Context, st *ledger.State) (next, error) {
	if st.PausedAt != nil {
		_, err := w.samples.Sample(ctx, st)
		return later, err
	}
	steps := []buildStep{
		{"fill", ledger.EventFilled, FaultDeployFilled, func(ctx context.Context) error {
			return w.work.Fill(ctx, w.c.Pool, st.Version())
		}},
		{"index", ledger.EventIndexed, FaultDeployIndexed, func(ctx context.Context) error {
			return w.c.Serving.Index(ctx, w.c.Pool, st.Version())
		}},
		{"analyze", ledger.EventAnalyzed, "", func(ctx context.Context) error {
			return w.c.Serving.Analyze(ctx, w.c.Pool, st.Version())
		}},
	}
	if st.Layout.Shape == job.Latest {
		steps = slices.Insert(steps, 1, buildStep{
			"keys", ledger.EventKeysCounted, "",
			func(ctx context.Context) error { return w.samples.Moved(ctx, st) },
		})
	}
	err := w.during(ctx, st, func(ctx context.Context) error {
		for _, s := range steps {
			if err := w.c.build(ctx, st, s); err != nil {
				return err
			}
		}
		return nil
	})
	w.samples.ForgetKeys()
	if err != nil {
		if a, ok := ledger.Hopeless(err); ok {
			return w.fail(ctx, st, a)
		}
		return done, err
	}
	err = w.c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := w.work.Seal(ctx, tx, st.Version()); err != nil {
			return err
		}
		return ledger.Move(ctx, tx, st, ledger.Built)
	})
	if err != nil {
		return done, err
	}
	w.c.hit(FaultDeploySealed)
	return again, nil
}

func (c *Controller) build(ctx context.Context, st *ledger.State, s buildStep) error {
	n, err := ledger.CountEvents(ctx, c.Pool, st, s.kind)
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
	e := st.Entry(s.kind, reason.StepTook(s.name, seconds))
	e.Detail = map[string]float64{"seconds": seconds}
	c.log(st).Info("built", "step", s.name, "seconds", seconds)
	return ledger.AddEvent(ctx, c.Pool, e)
}

// unhealthy ends a candidate that met a record or a query that cannot succeed, and notes what else needs a person.
func (w *watch) unhealthy(ctx context.Context, st *ledger.State, s sampling.Sample) (next, error) {
	if readiness.Fatal(s.Fault.Kind) {
		return w.fail(ctx, st, ledger.Answer{
			Code: readiness.ExitCode(s.Fault.Kind), Reason: reason.Fault(s.At, s.Fault),
			Next: fmt.Sprintf("correct the job file, then kappactl deploy FILE; kappactl status %s names the record", st.Job),
		})
	}
	if !st.Open() {
		return later, nil
	}
	code := job.ExitUnhealthy
	if s.Fault.Kind != job.FaultNone {
		code = readiness.ExitCode(s.Fault.Kind)
	}
	noted := st.ExitCode != nil && (*st.ExitCode == int(job.ExitGap) || *st.ExitCode == int(job.ExitUnhealthy))
	switch {
	case s.Verdict.Verdict == job.Unhealthy && (st.ExitCode == nil || *st.ExitCode != int(code)):
		return w.blocked(ctx, st, ledger.Answer{Code: code, Reason: s.Verdict.Reason, Next: w.cure(st, s)})
	case s.Verdict.Verdict != job.Unhealthy && s.Verdict.Verdict != job.Unknown && noted:
		if st.State == job.Waiting && st.Phase == job.Verified { // its flip was refused, perhaps for what it still lacks
			if lacks, err := w.c.survey(st).Lacks(ctx, st.LiveRef(), st.Ref()); err != nil || lacks {
				return later, err
			}
		}
		return again, ledger.SetOutcome(ctx, w.c.Pool, st, ledger.Answer{})
	}
	return later, nil
}

// cure returns the command to run next for a fault.
func (w *watch) cure(st *ledger.State, s sampling.Sample) string {
	if s.Verdict.Reason.Trouble() {
		return fmt.Sprintf("correct the cause; the deployment then continues: kappactl wait %s %s --for verified", st.Job,
			job.Number(st.Number))
	}
	again := fmt.Sprintf("kappactl abort %s %s, then kappactl deploy FILE", st.Job, job.Number(st.Number))
	if s.Fault.Kind == job.FaultArchive {
		return fmt.Sprintf("bring the file back, then kappactl resume %s %s, or: %s", st.Job, job.Number(st.Number), again)
	}
	if s.Fault.Kind == job.FaultGap {
		return fmt.Sprintf("kappactl resume %s %s --accept-gap %s:%d-%d, or: %s", st.Job, job.Number(st.Number), s.At,
			s.Fault.From, s.Fault.To, again)
	}
	return again
}
