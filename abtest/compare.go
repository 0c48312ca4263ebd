package abtest

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/abtest/judge"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// itself is who decides when no person does.
const itself = "kappactl"

func databaseTime(ctx context.Context, db pg.DB) (now time.Time, err error) {
	err = db.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now)
	return now, ledger.Wrap(err, "read the time of the database")
}

// compare is one look at the rewards: it reads what is new, judges the guardrails, decides, and does what was decided.
func (w *watch) compare(ctx context.Context, e *row) error {
	if err := w.gather(ctx, e); err != nil {
		return err
	}
	if err := w.guard(ctx, e); err != nil {
		return err
	}
	return w.r.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := ledger.LockTimeout(ctx, tx, ledger.SlowLock); err != nil {
			return err
		}
		if _, err := ledger.LockJob(ctx, tx, job.Name(e.Job)); err != nil {
			return err
		}
		e, err := w.held(ctx, tx)
		if err != nil || e == nil {
			return err
		}
		refused, open, err := asked(ctx, tx, e)
		if err != nil || open {
			return err
		}
		now, err := w.r.clock(ctx, tx)
		if err != nil {
			return err
		}
		in, err := readInputs(ctx, tx, e, now, true)
		if err != nil {
			return err
		}
		in.Refused = refused
		return w.decide(ctx, tx, e, in)
	})
}

// asked is the answer to what the run itself has asked for. A stop that was refused is asked for again at the next
// look.
func asked(ctx context.Context, tx *pg.Tx, e *row) (refused reason.Reason, open bool, err error) {
	if e.Progress.Asked == 0 {
		return reason.Reason{}, false, nil
	}
	type answer struct {
		Code *int
		Why  reason.Reason
	}
	found, err := pg.Structs[answer](ctx, tx,
		`SELECT exit_code AS code, answer AS why FROM kappactl.request WHERE id = @id`,
		pgx.NamedArgs{"id": e.Progress.Asked})
	switch {
	case err != nil:
		return reason.Reason{}, false, fmt.Errorf("read the answer to the experiment of %s: %w", e.Job, err)
	case len(found) > 0 && found[0].Code == nil:
		return reason.Reason{}, true, nil
	case len(found) > 0 && *found[0].Code != int(job.ExitOK) && e.State == Running:
		return found[0].Why, false, nil
	}
	e.Progress.Asked = 0
	return reason.Reason{}, false, nil
}

// readInputs reads what a verdict follows from. With adopt, parked rewards of subjects that have come since are counted
// first.
func readInputs(ctx context.Context, tx *pg.Tx, e *row, now time.Time, adopt bool) (in judge.Inputs, err error) {
	in = judge.Inputs{
		At: now.UTC(), Age: now.Sub(e.StartedAt), Arms: e.Arms, Weights: e.Weights, Paused: e.State == Paused,
		Before: e.Progress,
	}
	clock := now
	if e.Settings.Reward != nil {
		if clock, err = readSource(ctx, tx, e, now, adopt, &in); err != nil {
			return in, err
		}
	}
	if in.Matured, err = readTallies(ctx, tx, e, clock); err != nil {
		return in, err
	}
	if in.Exposed, err = readEpochs(ctx, tx, e); err != nil {
		return in, err
	}
	if in.Guards, err = readGuards(ctx, tx, e); err != nil {
		return in, err
	}
	err = tx.QueryRow(ctx, `SELECT count(*) FROM kappactl.assignment WHERE job = @job AND run = @run AND crossed`,
		pgx.NamedArgs{"job": e.Job, "run": e.Run}).Scan(&in.Crossed)
	return in, ledger.Wrap(err, "read the subjects of %s", e.Job)
}

// readSource reads how far rewards have been read, and returns the clock by which subjects are counted.
func readSource(ctx context.Context, tx *pg.Tx, e *row, now time.Time, adopt bool, in *judge.Inputs) (time.Time,
	error,
) {
	b := &book{}
	if adopt {
		found, err := openBook(ctx, tx, job.Name(e.Job))
		if err != nil || found == nil {
			return now, err
		}
		b = found
		b.Now = now
		if err := b.adoptOrphans(ctx, tx); err != nil {
			return now, err
		}
	}
	var trouble reason.Reason
	err := tx.QueryRow(ctx, `SELECT watermark, trouble FROM kappactl.reward_source WHERE job = @job AND run = @run`,
		pgx.NamedArgs{"job": e.Job, "run": e.Run}).Scan(&b.Watermark, &trouble)
	if err != nil {
		return now, fmt.Errorf("read the rewards of %s: %w", e.Job, err)
	}
	b.Settings, b.Now = e.Settings, now
	in.Source = trouble
	if b.source() != sourceHTTP {
		mark := b.clock()
		in.Watermark = &mark
	}
	return b.clock(), nil
}

// decide judges and does what follows.
func (w *watch) decide(ctx context.Context, tx *pg.Tx, e *row, in judge.Inputs) error {
	out := judge.Judge(e.Settings, in)
	last := string(out.Verdict) + " " + out.Reason.Key()
	acts := out.Verdict != judge.Wait && out.Verdict != judge.Freeze
	p := out.After
	repeated := p.Last == last && (!acts || out.Verdict == judge.Win &&
		(p.Asked != 0 || e.Settings.Promote != job.PromoteAuto))
	p.Last = last
	e.Progress = p
	if repeated {
		return keepProgress(ctx, tx, e, p)
	}
	why, event, err := w.apply(ctx, tx, e, out)
	if err != nil {
		return err
	}
	if err := keepProgress(ctx, tx, e, e.Progress); err != nil {
		return err
	}
	if err := decide(ctx, tx, e, Verdict(out.Verdict), why, itself, &in); err != nil {
		return err
	}
	if event == "" {
		return nil
	}
	w.r.Log.Info(why.Text(), "job", e.Job)
	return ledger.AddEvent(ctx, tx, ledger.Entry{Job: e.Job, Whole: true, Kind: event, Message: why, By: itself})
}

// apply does what was decided. It returns the reason of the decision and the event of it; empty: none.
func (w *watch) apply(ctx context.Context, tx *pg.Tx, e *row, out judge.Outcome) (why reason.Reason,
	event ledger.EventKind, err error,
) {
	name := job.Name(e.Job)
	switch out.Verdict {
	case judge.Move:
		e.Weights = out.Weights
		e.Epoch++
		return reason.ABWeights(name, e.Run, e.texts()), "", weigh(ctx, tx, e)
	case judge.Pause, judge.Rollback: // readers leave at once; the view is written by the request that ends the run
		e.Progress.Cause = out.Reason.Code
		why = reason.ABTrouble(name, e.Run, e.Arms[0], out.Reason)
		if err = setState(ctx, tx, e, Paused, why); err == nil && out.Verdict == judge.Rollback {
			e.Progress.Asked, err = ask(ctx, tx, e, ledger.ABStop, 0, ledger.Args{Because: out.Reason})
		}
		return why, ledger.EventABPaused, err
	case judge.Win:
		if e.Settings.Promote != job.PromoteAuto {
			return reason.ABWinner(name, e.Run, out.Reason), ledger.EventABDecided, nil
		}
		n, err := job.ParseNumber(out.Arm)
		if err != nil {
			return why, "", err
		}
		e.Progress.Asked, err = ask(ctx, tx, e, ledger.Promote, n, ledger.Args{})
		return reason.ABPromotes(name, e.Run, out.Arm, out.Reason), ledger.EventABDecided, err
	case judge.Freeze, judge.Wait:
	}
	return out.Reason, "", nil
}

// ask writes a request of the run itself, which any agent does as it does those of people.
func ask(ctx context.Context, tx *pg.Tx, e *row, verb ledger.Verb, n job.Number, args ledger.Args) (int64, error) {
	return ledger.AskWithin(ctx, tx, ledger.Request{Job: job.Name(e.Job), Number: n, Verb: verb, Args: args, By: itself})
}

func keepProgress(ctx context.Context, tx *pg.Tx, e *row, p judge.Progress) error {
	_, err := tx.Exec(ctx, `UPDATE kappactl.experiment SET progress = @progress WHERE job = @job AND run = @run`,
		pgx.NamedArgs{"job": e.Job, "run": e.Run, "progress": document{p}})
	return ledger.Wrap(err, "note the progress of the experiment of %s", e.Job)
}
