package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
)

// moved is the UPDATE that takes deployments from the states in which an event has a meaning to those that follow. Its
// arguments are those of moveArgs; a WHERE clause over d says which deployments, and set what else is written.
func moved(set, where string) string {
	return `UPDATE kappactl.deployment d SET state = s.after, exit_code = @code, message = @message, next_command = @next,
			state_since = CASE WHEN d.state = s.after THEN d.state_since ELSE clock_timestamp() END,
			ended_at = CASE WHEN s.after = ANY (@ending::text[]) THEN clock_timestamp() ELSE d.ended_at END` + set + `
		FROM unnest(@from::text[], @to::text[]) AS s (before, after) WHERE d.state = s.before AND ` + where
}

// moveArgs are the arguments of moved: the event, what a waiting command is to say, and what else the statement names.
func moveArgs(on DeploymentEvent, a Answer, more pgx.NamedArgs) pgx.NamedArgs {
	from, to := steps(on)
	args := pgx.NamedArgs{
		"from": from, "to": to, "ending": ending(), "code": a.exitCode(), "message": a.Reason,
		"next": a.Next,
	}
	for name, v := range more {
		args[name] = v
	}
	return args
}

// exitCode is null for success: a command that waits is then not at its end.
func (a Answer) exitCode() *int {
	if a.Code == job.ExitOK {
		return nil
	}
	code := int(a.Code)
	return &code
}

// MoveDeployment moves a deployment from the state in which it was read, with what a waiting command is to say. ErrLost
// when the event has no meaning in that state, or the deployment is in another one, or under another claim, by now.
func MoveDeployment(ctx context.Context, db pg.DB, st *State, on DeploymentEvent, a Answer) error {
	tag, err := db.Exec(ctx, moved("", `d.id = @id AND d.claim = @claim AND d.state = @read`),
		moveArgs(on, a, pgx.NamedArgs{"id": st.ID, "claim": st.Claim, "read": string(st.State)}))
	if err != nil {
		return fmt.Errorf("move deployment %d: %w", st.ID, err)
	}
	if tag.RowsAffected() == 0 {
		return fmt.Errorf("deployment %d is %s: %q: %w", st.ID, st.State, on, ErrLost)
	}
	return nil
}

// SetOutcome notes what a waiting command is to say, and leaves the deployment in the state in which it was read.
func SetOutcome(ctx context.Context, db pg.DB, st *State, a Answer) error {
	tag, err := db.Exec(ctx, `UPDATE kappactl.deployment SET exit_code = @code, message = @message, next_command = @next
		WHERE id = @id AND claim = @claim AND state = @read`,
		pgx.NamedArgs{
			"id": st.ID, "claim": st.Claim, "read": string(st.State), "code": a.exitCode(), "message": a.Reason, "next": a.Next,
		})
	if err != nil {
		return fmt.Errorf("note on deployment %d: %w", st.ID, err)
	}
	if tag.RowsAffected() == 0 {
		return ErrLost
	}
	return nil
}

// EndDeployment ends a deployment on request, whoever holds its claim. One that has ended stays as it is.
func EndDeployment(ctx context.Context, tx *pg.Tx, id int64, on DeploymentEvent, a Answer) error {
	_, err := tx.Exec(ctx, moved("", `d.id = @id`), moveArgs(on, a, pgx.NamedArgs{"id": id}))
	return Wrap(err, "end deployment %d", id)
}

// EndObserving ends the rollback windows that are open for other deployments of the job.
func EndObserving(ctx context.Context, tx *pg.Tx, name string, but int64, on DeploymentEvent) error {
	_, err := tx.Exec(ctx, `WITH ended AS (`+moved("", `d.job = @job AND d.state = 'observing' AND d.id <> @but`)+`
			RETURNING d.id, d.job, d.number, d.state)
		INSERT INTO kappactl.event (job, number, deployment, kind, message)
		SELECT job, number, id, state, @why::jsonb FROM ended`,
		moveArgs(on, Answer{}, pgx.NamedArgs{"job": name, "but": but, "why": reason.WindowEndedByFlip()}))
	return Wrap(err, "end earlier deployments of %s", name)
}

// NotePromoted notes a flip on the deployment that asked for it. Without a version to go back to it is settled at once.
func NotePromoted(ctx context.Context, tx *pg.Tx, st *State, from *job.Ref, keepOld time.Duration) error {
	on := Promoted
	if from == nil {
		on = PromotedFirst
	}
	tag, err := tx.Exec(ctx, moved(`, promoted_at = clock_timestamp(),
			observe_until = CASE WHEN s.after = 'observing' THEN clock_timestamp() + @keep::interval END`, `d.id = @id`),
		moveArgs(on, Answer{}, pgx.NamedArgs{"id": st.ID, "keep": pg.Interval(keepOld)}))
	if err == nil && tag.RowsAffected() == 0 {
		return fmt.Errorf("note deployment %d as promoted: %w", st.ID, ErrLost)
	}
	return Wrap(err, "note deployment %d as promoted", st.ID)
}

// NoteRolledBack notes on the deployment of a version that readers left it.
func NoteRolledBack(ctx context.Context, tx *pg.Tx, from job.Ref, a Actor, why reason.Reason) error {
	outcome := Answer{Reason: why}
	if a.Request == 0 {
		outcome.Code = job.ExitRolledBack
		outcome.Next = "correct the cause, then kappactl deploy FILE (the same version needs --again)"
	}
	_, err := tx.Exec(ctx, moved("",
		`d.id = (SELECT max(id) FROM kappactl.deployment WHERE job = @job AND number = @number)`),
		moveArgs(WentBack, outcome, pgx.NamedArgs{"job": string(from.Job), "number": int(from.Number)}))
	return Wrap(err, "note the deployment of %s as rolled back", from)
}

// InheritWindow ends a deployment that wrote the live version's view again; a rollback window that is open for an
// earlier deployment of the version goes on with it.
func InheritWindow(ctx context.Context, tx *pg.Tx, st *State) error {
	var until *time.Time
	var previous *int
	args := pgx.NamedArgs{"id": st.ID, "job": st.Job, "number": st.Number}
	rows, err := tx.Query(ctx, moved("", `d.job = @job AND d.number = @number AND d.id < @id AND d.state = 'observing'`)+
		` RETURNING d.previous, d.observe_until`, moveArgs(Displaced, Answer{}, args))
	if err != nil {
		return fmt.Errorf("end the earlier deployments of %s: %w", st.Ref(), err)
	}
	_, err = pgx.ForEachRow(rows, []any{&previous, &until}, func() error { return nil })
	if err != nil {
		return fmt.Errorf("end the earlier deployments of %s: %w", st.Ref(), err)
	}
	on := Applied
	if until != nil {
		on = AppliedWithin
		args["previous"] = previous
	} else {
		args["previous"] = st.Previous
	}
	args["until"] = until
	tag, err := tx.Exec(ctx,
		moved(`, promoted_at = clock_timestamp(), observe_until = @until::timestamptz, previous = @previous::integer`,
			`d.id = @id`), moveArgs(on, Answer{}, args))
	if err == nil && tag.RowsAffected() == 0 {
		return fmt.Errorf("note deployment %d as applied: %w", st.ID, ErrLost)
	}
	return Wrap(err, "note deployment %d as applied", st.ID)
}
