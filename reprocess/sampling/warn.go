package sampling

import (
	"context"
	"slices"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/plan"
	"github.com/kappactl/kappactl/reprocess/readiness"
)

// agesEvery is how often a version that is behind asks how old its unread records are.
const agesEvery = time.Minute

// age asks again how old the unread part of the logs is, when the version is behind and the last answer is old. What
// cannot be asked stays unknown.
func (w *Sampler) age(ctx context.Context, st *ledger.State, rows []readiness.Observation) error {
	now := w.c.Now()
	if !readiness.Behind(st.Phase, rows) {
		w.ages = readiness.Ages{}
		return nil
	}
	if now.Sub(w.aged) >= agesEvery {
		w.aged = now
		limited, cancel := context.WithTimeout(ctx, w.c.config.AskTimeout)
		found, err := plan.AskAges(limited, w.c.Brokers, w.c.History.Of(&st.Spec), st.Spec.Source.Topics, now)
		cancel()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			w.c.log(st).Info("when retention deletes is not known", "reason", err)
			w.ages = readiness.Ages{}
		default:
			w.ages = found
			if st.Phase == job.Replaying {
				if err := w.deadlines(ctx, st); err != nil {
					return err
				}
			}
		}
	}
	for i := range rows {
		r := &rows[i]
		if r.Lag != nil && *r.Lag > 0 {
			r.Deadline = w.ages.Deadline(r.Key, r.Position)
		}
	}
	return nil
}

// deadlines notes when retention may delete what a replay has not read.
func (w *Sampler) deadlines(ctx context.Context, st *ledger.State) error {
	work, err := w.c.Engines.Of(&st.Spec)
	if err != nil {
		return err
	}
	return work.Deadlines(ctx, w.c.Pool, st.Ref(), w.ages.Deadline)
}

// warn finds and stores what a person should know of a version beside its verdict.
func (w *Sampler) warn(ctx context.Context, st *ledger.State, rows []readiness.Observation, paces []ledger.Pace) error {
	if err := w.alarmed(ctx, st); err != nil {
		return err
	}
	expiry := readiness.NewExpiry(st.Phase, rows)
	margin := 1.0
	if w.alarm.on {
		margin = readiness.StillLate
	}
	retention := expiry.Warning(w.c.Now(), margin)
	warnings := []reason.Reason{retention, readiness.FutureTimestamps(st.Now, rows)}
	warnings = append(warnings, w.tombstones(st, expiry)...)
	moved, err := w.keysMoved(ctx, st)
	if err != nil {
		return err
	}
	if err := w.sound(ctx, st, retention, expiry.Conclusive(st.Phase, rows, w.ages)); err != nil {
		return err
	}
	warnings = slices.DeleteFunc(slices.Concat(warnings, ledger.SlowedBy(paces), moved, []reason.Reason{w.Unindexed}),
		reason.Reason.IsZero)
	return w.noteWarnings(ctx, st, warnings)
}

// tombstones warns of deletes that a replay of a compacted topic may miss.
func (w *Sampler) tombstones(st *ledger.State, e readiness.Expiry) []reason.Reason {
	if st.Layout.Shape != job.Latest || st.Phase != job.Replaying && st.Phase != job.Building || st.FrozenAt == nil {
		return nil
	}
	var out []reason.Reason
	for _, name := range st.Spec.Source.Topics {
		out = append(out, readiness.TombstonesLost(w.ages.Topics[name], w.c.Now(), *st.FrozenAt, e.ETASeconds))
	}
	return out
}

// alarm is whether the last event about retention is a warning. Its owner is the Sampler.
type alarm struct{ read, on bool }

// alarmed reads, once, whether the deployment's history ends with a warning of retention, by whichever controller.
func (w *Sampler) alarmed(ctx context.Context, st *ledger.State) error {
	if w.alarm.read {
		return nil
	}
	on, err := ledger.RetentionWarned(ctx, w.c.Pool, st)
	if err == nil {
		w.alarm = alarm{read: true, on: on}
	}
	return err
}

// sound writes to a deployment's history, once, that retention deletes unread records, and once that it no longer does.
func (w *Sampler) sound(ctx context.Context, st *ledger.State, warning reason.Reason, conclusive bool) error {
	on := !warning.IsZero()
	if on == w.alarm.on || !on && !conclusive {
		return nil
	}
	if !on {
		warning = reason.RetentionOver()
	}
	e := st.Entry(ledger.EventRetention, warning)
	e.Detail = ledger.RetentionDetail{Code: warning.Code}
	if err := ledger.AddEvent(ctx, w.c.Pool, e); err != nil {
		return err
	}
	w.alarm.on = on
	if on {
		w.c.log(st).Warn(warning.Text())
	}
	return nil
}
