package reprocess

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// eventRetention notes that retention is going to overtake a version, and that it no longer is.
const eventRetention = "retention"

// age asks again how old the unread part of the logs is, when the version is behind and the last answer is old. What cannot be asked
// stays unknown.
func (w *watch) age(ctx context.Context, st *state, rows []observed) error {
	now := w.c.Now()
	if !isBehind(st, rows) {
		w.ages = ages{}
		return nil
	}
	if now.Sub(w.aged) >= agesEvery {
		w.aged = now
		limited, cancel := context.WithTimeout(ctx, w.c.config.AskTimeout)
		found, err := askAges(limited, w.c.Topics, st.spec.Source.Topics, now)
		cancel()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			w.c.log(st).Info("when retention deletes is not known", "reason", err)
			w.ages = ages{}
		default:
			w.ages = found
			if st.Phase == job.Replaying {
				if err := w.c.Queue.Deadlines(ctx, w.c.Pool, st.ref(), found.deadline); err != nil {
					return err
				}
			}
		}
	}
	for i := range rows {
		r := &rows[i]
		if r.Lag != nil && *r.Lag > 0 {
			r.Deadline = w.ages.deadline(r.partition, r.Position)
		}
	}
	return nil
}

// isBehind says that a version replays, or is so far behind that retention may matter.
func isBehind(st *state, rows []observed) bool {
	if st.Phase == job.Replaying || st.Phase == job.Building {
		return true
	}
	return slices.ContainsFunc(rows, func(r observed) bool { return r.LagSeconds != nil && *r.LagSeconds >= behindFrom.Seconds() })
}

// warn finds what a person should know of a version beside its verdict, and notes it.
func (w *watch) warn(ctx context.Context, st *state, rows []observed) error {
	now := w.c.Now()
	if err := w.alarmed(ctx, st); err != nil {
		return err
	}
	margin := 1.0
	if w.alarm.on {
		margin = stillLate
	}
	first, place, left := soonest(st, rows)
	alarm := late(now, first, left, margin, place)
	var warnings []string
	if alarm != "" {
		warnings = append(warnings, alarm)
	}
	if text := stampedAhead(st.Now, rows); text != "" {
		warnings = append(warnings, text)
	}
	if st.layout.Shape == job.Latest && (st.Phase == job.Replaying || st.Phase == job.Building) && st.FrozenAt != nil {
		for _, name := range st.spec.Source.Topics {
			if text := tombstonesLost(w.ages.topics[name], now, *st.FrozenAt, left); text != "" {
				warnings = append(warnings, text)
			}
		}
	}
	slowed, err := w.slowedBy(ctx, st)
	if err != nil {
		return err
	}
	moved, err := w.keysMoved(ctx, st)
	if err != nil {
		return err
	}
	warnings = append(append(warnings, slowed...), moved...)
	if err := w.sound(ctx, st, alarm, w.surely(st, rows, first, left)); err != nil {
		return err
	}
	return setWarnings(ctx, w.c.Pool, st, warnings)
}

// clocksApart is how far the clocks of producers and of PostgreSQL may be apart.
const clocksApart = time.Minute

// stampedAhead says, once for all partitions, that records come from the future: a producer's clock is wrong. Its words only change
// with what it found.
func stampedAhead(now time.Time, rows []observed) string {
	furthest, ahead := observed{}, 0
	for _, r := range rows {
		if r.RecordTime == nil || !r.RecordTime.After(now.Add(clocksApart)) {
			continue
		}
		if ahead++; furthest.RecordTime == nil || r.RecordTime.After(*furthest.RecordTime) {
			furthest = r
		}
	}
	if ahead == 0 {
		return ""
	}
	text := fmt.Sprintf("a record of %s is stamped %s, which is still to come: a producer's clock is wrong, or its unit of time", furthest.partition, stamp(*furthest.RecordTime))
	if ahead > 1 {
		text += fmt.Sprintf("; so are records of %d more partitions", ahead-1)
	}
	return text
}

// soonest is the first moment at which retention deletes something unread, where, and in how many seconds all is read at the rates of
// the last samples; nil is unknown.
func soonest(st *state, rows []observed) (first *time.Time, place string, left *float64) {
	var unread int64
	var net float64
	known := len(rows) > 0
	for _, r := range rows {
		if r.Deadline != nil && (first == nil || r.Deadline.Before(*first)) {
			first, place = r.Deadline, r.partition.String()
		}
		if r.Lag == nil {
			known = false
			continue
		}
		unread += *r.Lag
		if r.ReadRate != nil {
			net += *r.ReadRate
			if st.Phase.Consumes() && r.ProduceRate != nil {
				net -= *r.ProduceRate
			}
		}
	}
	if known && net > 0 {
		s := float64(unread) / net
		left = &s
	}
	return first, place, left
}

// alarm is whether history says that retention comes before the end of what is unread. Its owner is the watch.
type alarm struct{ read, on bool }

// alarmOver is what history says when an alarm has ended.
const alarmOver = "retention no longer comes before what is unread is read"

// surely says that no alarm means that there is no danger, and not that too little is known: brokers that did not answer, and rates
// that need another sample, as after another controller has taken over.
func (w *watch) surely(st *state, rows []observed, first *time.Time, left *float64) bool {
	if slices.ContainsFunc(rows, func(r observed) bool { return r.Lag == nil }) {
		return false
	}
	return !isBehind(st, rows) || !w.ages.at.IsZero() && (first == nil || left != nil)
}

// alarmed reads, once, whether the deployment's history ends with an alarm, whichever controller noted it.
func (w *watch) alarmed(ctx context.Context, st *state) error {
	if w.alarm.read {
		return nil
	}
	on, err := alarmNoted(ctx, w.c.Pool, st)
	if err == nil {
		w.alarm = alarm{read: true, on: on}
	}
	return err
}

// sound notes once in a deployment's history that retention comes first, and once that it surely no longer does.
func (w *watch) sound(ctx context.Context, st *state, text string, surely bool) error {
	on := text != ""
	if on == w.alarm.on || !on && !surely {
		return nil
	}
	e := st.entry(eventRetention, "%s", text)
	if !on {
		e = st.entry(eventRetention, alarmOver)
	}
	if err := addEvent(ctx, w.c.Pool, e); err != nil {
		return err
	}
	w.alarm.on = on
	if on {
		w.c.log(st).Warn(text)
	}
	return nil
}

// alarmNoted says whether the last that history has of a deployment's retention is an alarm.
func alarmNoted(ctx context.Context, db pg.DB, st *state) (on bool, err error) {
	err = db.QueryRow(ctx, `SELECT coalesce((SELECT message <> @over FROM kappactl.event
		WHERE deployment = @id AND kind = @kind ORDER BY id DESC LIMIT 1), false)`,
		pgx.NamedArgs{"id": st.ID, "kind": eventRetention, "over": alarmOver}).Scan(&on)
	return on, wrap(err, "read the alarms of deployment %d", st.ID)
}

// slowRow is what slows the work on a version down on one agent.
type slowRow struct {
	Agent          string
	Brake          string
	BrokerThrottle float64
}

// slowedBy says what slows a version down at the moment.
func (w *watch) slowedBy(ctx context.Context, st *state) ([]string, error) {
	args := pgx.NamedArgs{"job": st.Job, "number": st.Number, "age": pg.Interval(staleAfter)}
	rows, err := collect[slowRow](ctx, w.c.Pool, `SELECT agent, brake, broker_throttle FROM kappactl.pace
		WHERE job = @job AND number = @number AND at > clock_timestamp() - @age::interval AND (brake <> '' OR broker_throttle > 0.01) ORDER BY agent`, args)
	if err != nil {
		return nil, fmt.Errorf("read what slows %s down: %w", st.ref(), err)
	}
	var out []string
	for _, r := range rows {
		if r.Brake != "" {
			out = append(out, fmt.Sprintf("the replay is slowed down on agent %s: %s", r.Agent, r.Brake))
		}
		if r.BrokerThrottle > 0 {
			out = append(out, fmt.Sprintf("throttled by the broker: agent %s waits %.0f%% of its time for a quota", r.Agent, 100*min(1, r.BrokerThrottle)))
		}
	}
	return out, nil
}

// setWarnings replaces the warnings of a version, fenced by the deployment's claim.
func setWarnings(ctx context.Context, db pg.DB, st *state, warnings []string) error {
	if warnings == nil {
		warnings = []string{}
	}
	text, err := json.Marshal(warnings)
	if err != nil {
		return errors.Join(errors.New("encode warnings"), err)
	}
	_, err = db.Exec(ctx, `UPDATE kappactl.version v SET warnings = @warnings::jsonb FROM kappactl.deployment d
		WHERE v.job = @job AND v.number = @number AND d.id = @id AND d.claim = @claim AND v.warnings <> @warnings::jsonb`,
		pgx.NamedArgs{"job": st.Job, "number": st.Number, "id": st.ID, "claim": st.claim, "warnings": string(text)})
	return wrap(err, "note the warnings of %s", st.ref())
}
