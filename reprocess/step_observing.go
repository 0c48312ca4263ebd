package reprocess

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// failuresToFlipBack is how often in a row a check fails after the flip before readers go back.
const failuresToFlipBack = 2

// observing ends the rollback window; until then it runs the checks after the flip, and flips back when one fails twice in a row.
func (w *watch) observing(ctx context.Context, st *state) (next, error) {
	checks := dueIn(st.spec.Checks, job.CheckAfter)
	var past []pastCheck
	if len(checks) > 0 {
		var err error
		if past, err = readChecks(ctx, w.c.Pool, st.ID, job.CheckAfter); err != nil {
			return done, err
		}
	}
	// By what is written, not by what this process saw: whoever comes after an agent that died goes on.
	bad := failedTwice(checks, past)
	if st.ObserveUntil == nil || !st.Now.Before(*st.ObserveUntil) {
		return w.settle(ctx, st, bad)
	}
	if bad == nil && st.Message != "" && st.ExitCode == nil && !notPassedSince(st.Message, checks, past) {
		return again, w.nothingToGoBackFrom(ctx, st)
	}
	if bad != nil && w.c.Now().Sub(w.back.tried) >= w.back.pause {
		return w.flipBack(ctx, st, *bad)
	}
	due := w.due(checks, past, st.Now)
	if len(due) == 0 {
		return later, nil
	}
	return w.runAfter(ctx, st, due, past)
}

// settle ends the rollback window. There is nothing to go back to any more: a check that fails is what the deployment ends with.
func (w *watch) settle(ctx context.Context, st *state, bad *pastCheck) (next, error) {
	text := "the rollback window is over"
	var a *Answer
	if bad != nil {
		text = fmt.Sprintf("the rollback window of %s is over and check %q fails: %s; ", st.ref(), bad.Name, bad.Detail)
		if _, why, found := strings.Cut(st.Message, cannotGoBack); found {
			text += "readers could not go back" + why
		} else {
			text += "readers go on seeing it"
		}
		a = &Answer{Code: job.ExitChecks, Text: text, Next: "correct the cause, then kappactl deploy FILE"}
	}
	err := w.c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := setState(ctx, tx, st, job.Settled, a); err != nil {
			return err
		}
		return addEvent(ctx, tx, st.entry("settled", "%s", text))
	})
	return again, err
}

// nothingToGoBackFrom takes back what was said while readers could not go back: the check that wanted it passes again, or was
// taken out.
func (w *watch) nothingToGoBackFrom(ctx context.Context, st *state) error {
	w.back = backing{}
	return w.c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := setMessage(ctx, tx, st, "", ""); err != nil {
			return err
		}
		return addEvent(ctx, tx, st.entry("no rollback needed", "what failed after the flip fails no more: readers stay with %s", job.Number(st.Number)))
	})
}

// failedTwice is a check that failed so often in a row that readers have to go back.
func failedTwice(checks []job.Check, past []pastCheck) *pastCheck {
	for _, k := range checks {
		for i, p := range past {
			if p.is(k) && p.Failures >= failuresToFlipBack {
				return &past[i]
			}
		}
	}
	return nil
}

// notPassedSince says that the check for which readers were to go back is in the file and has not passed since: one that was changed in place has
// yet to run as it stands there.
func notPassedSince(message string, checks []job.Check, past []pastCheck) bool {
	for _, k := range checks {
		if strings.HasPrefix(message, twiceInARow(k.Name)) {
			return !slices.ContainsFunc(past, func(p pastCheck) bool { return p.is(k) && p.Failures == 0 })
		}
	}
	return false
}

// twiceInARow begins the reason for which readers go back.
func twiceInARow(check string) string { return fmt.Sprintf("check %q failed twice in a row: ", check) }

// due are the checks that did not run yet as they stand in the file, and those whose time has come again.
func (w *watch) due(checks []job.Check, past []pastCheck, now time.Time) []job.Check {
	var due []job.Check
	for _, k := range checks {
		ran := false
		for _, p := range past {
			ran = ran || p.is(k) && now.Sub(p.At) < max(k.Every, w.c.config.Tick)
		}
		if !ran {
			due = append(due, k)
		}
	}
	return due
}

// runAfter runs checks and notes what they said; who reads it next acts on it.
func (w *watch) runAfter(ctx context.Context, st *state, due []job.Check, past []pastCheck) (next, error) {
	var r *checkRun
	err := w.during(ctx, st, func(ctx context.Context) (err error) {
		r, err = w.c.checkAfter(ctx, st, due)
		return err
	})
	if err != nil {
		return w.passing(st, err)
	}
	err = w.c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := fence(ctx, tx, st); err != nil {
			return err
		}
		if err := writeResults(ctx, tx, r); err != nil {
			return err
		}
		return w.noteChanges(ctx, tx, r, past)
	})
	if err != nil {
		return done, err
	}
	w.c.hit(FaultCheckNoted)
	return again, nil
}

// noteChanges writes history where a check says something else than the time before.
func (w *watch) noteChanges(ctx context.Context, tx *pg.Tx, r *checkRun, past []pastCheck) error {
	for _, result := range r.results {
		var before pastCheck
		for _, p := range past {
			if p.Name == result.Name {
				before = p
			}
		}
		log := w.c.log(r.st).With("check", result.Name, "outcome", string(result.Outcome), "reason", result.Detail)
		switch result.Outcome {
		case CheckFail:
			log.Error("a check fails after the flip")
		case CheckNoAnswer:
			log.Warn("a check gives no answer after the flip")
		case CheckPass:
		}
		// A check that goes on failing, as when readers cannot go back, would fill the history with its examples.
		if before.Outcome == result.Outcome && (result.Outcome != CheckFail || before.Failures >= failuresToFlipBack) {
			continue
		}
		kind := map[CheckOutcome]string{CheckPass: "check passed", CheckFail: "check failed", CheckNoAnswer: "check without answer"}[result.Outcome]
		e := r.st.entry(kind, "after the flip: %s", checkWords([]CheckResult{result}))
		e.Detail = map[string]any{"checks": []CheckResult{result}, "positions": r.at}
		if err := addEvent(ctx, tx, e); err != nil {
			return err
		}
	}
	return nil
}

// backing is what the tries to flip back came to.
type backing struct {
	tried time.Time
	pause time.Duration
	said  string
}

// flipBack rolls back by itself: by the barrier and the transaction of a rollback that a person asks for.
func (w *watch) flipBack(ctx context.Context, st *state, bad pastCheck) (next, error) {
	if st.Previous == nil {
		return later, nil
	}
	to := job.Ref{Job: job.Name(st.Job), Number: job.Number(*st.Previous)}
	reason := twiceInARow(bad.Name) + bad.Detail
	err := w.during(ctx, st, func(ctx context.Context) error {
		// Its tries take a while: once readers have left this version, it is not for its check to move them.
		_, err := w.c.rollback(ctx, actor{deployment: st.ID, claim: st.claim, by: "kappactl", reason: reason, while: job.Observing}, to, Args{})
		return err
	})
	var refusal *job.Refusal
	switch {
	case err == nil:
		return again, nil
	case errors.As(err, &refusal):
	case ctx.Err() != nil || errors.Is(err, errLost) || pg.Unreachable(err):
		return done, err
	default: // it would come again at every try: a person has to look
		refusal = refuse(job.ExitFailed, "kappactl rollback "+st.Job, "%s", err)
	}
	// The check goes on in between: when it passes again, nothing is left to undo.
	w.back.tried, w.back.pause = w.c.Now(), w.c.config.Tick*10
	return later, w.cannotFlipBack(ctx, st, to, reason, refusal)
}

// cannotGoBack are the words by which a deployment says that it should have rolled back and could not.
const cannotGoBack = "readers cannot go back"

// cannotFlipBack alarms, once for each cause.
func (w *watch) cannotFlipBack(ctx context.Context, st *state, to job.Ref, reason string, refusal *job.Refusal) error {
	cause, _, _ := strings.Cut(refusal.Cause, "\n")
	w.c.log(st).Error("cannot roll back by itself", "because", reason, "reason", refusal.Cause)
	if w.back.said == cause {
		return nil
	}
	text := fmt.Sprintf("%s; %s to %s by themselves: %s", reason, cannotGoBack, to.Number, refusal.Cause)
	err := w.c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := setMessage(ctx, tx, st, text, refusal.Next); err != nil {
			return err
		}
		return addEvent(ctx, tx, st.entry("not rolled back", "%s", text))
	})
	if err == nil {
		w.back.said = cause
	}
	return err
}
