package reprocess

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// actor is on whose behalf an act is done: a request or a deployment, under its claim.
type actor struct {
	request    int64
	deployment int64
	claim      int64
	by         string
	reason     string              // of an act that nobody asked for
	while      job.DeploymentState // the deployment must be in it still, and the newest of its version; empty: whatever
}

// fence locks the actor's row, so that an act is done once: errLost when it is answered, somebody else holds it, or the deployment no
// longer governs its version in the state in which it decided to act.
func (a actor) fence(ctx context.Context, tx *pg.Tx) error {
	var held bool
	var err error
	if a.request != 0 {
		held, err = lockRequest(ctx, tx, a.request, a.claim)
	} else {
		held, err = lockDeployment(ctx, tx, a.deployment, a.claim, a.while)
	}
	if err == nil && !held {
		return errLost
	}
	return err
}

// begin is how every act on a job begins: the job's row is locked, then the actor's.
func (a actor) begin(ctx context.Context, tx *pg.Tx, name job.Name) (jobRow, error) {
	if err := lockTimeout(ctx, tx, slowLock); err != nil {
		return jobRow{}, err
	}
	j, err := lockJob(ctx, tx, name)
	if err != nil {
		return jobRow{}, err
	}
	return j, a.fence(ctx, tx)
}

// answer writes the answer in the act's own transaction; a deployment has nobody to answer.
func (a actor) answer(ctx context.Context, db pg.DB, text string, next string) error {
	if a.request == 0 {
		return nil
	}
	return writeAnswer(ctx, db, a.request, a.claim, Answer{Code: job.ExitOK, Text: text, Next: next})
}

func lockRequest(ctx context.Context, tx *pg.Tx, id, claim int64) (bool, error) {
	tag, err := tx.Exec(ctx, `SELECT 1 FROM kappactl.request WHERE id = @id AND claim = @claim AND answered_at IS NULL FOR UPDATE`,
		pgx.NamedArgs{"id": id, "claim": claim})
	if err != nil {
		return false, fmt.Errorf("lock request %d: %w", id, err)
	}
	return tag.RowsAffected() == 1, nil
}

func lockDeployment(ctx context.Context, tx *pg.Tx, id, claim int64, while job.DeploymentState) (bool, error) {
	tag, err := tx.Exec(ctx, `SELECT 1 FROM kappactl.deployment d WHERE id = @id AND claim = @claim AND (@while::text = ''
			OR state = @while AND NOT EXISTS (SELECT FROM kappactl.deployment n WHERE n.job = d.job AND n.number = d.number AND n.id > d.id))
		FOR UPDATE OF d`,
		pgx.NamedArgs{"id": id, "claim": claim, "while": string(while)})
	if err != nil {
		return false, fmt.Errorf("lock deployment %d: %w", id, err)
	}
	return tag.RowsAffected() == 1, nil
}

// lockVersions keeps the controllers of both versions from moving them until the transaction ends.
func lockVersions(ctx context.Context, tx *pg.Tx, a, b job.Ref) error {
	_, err := tx.Exec(ctx, `SELECT 1 FROM kappactl.version WHERE job = @job AND number IN (@a, @b) ORDER BY number FOR UPDATE`,
		pgx.NamedArgs{"job": string(a.Job), "a": int(a.Number), "b": int(b.Number)})
	if err != nil {
		return fmt.Errorf("lock versions of %s: %w", a.Job, err)
	}
	return nil
}

// stepVersion moves a version that the transaction has locked.
func stepVersion(ctx context.Context, tx *pg.Tx, ref job.Ref, from job.Phase, on Event) error {
	to, ok := Next(from, on)
	if !ok {
		return refuse(job.ExitConflict, "kappactl status "+string(ref.Job), "%s is %s: %q means nothing there", ref, from, on)
	}
	tag, err := tx.Exec(ctx, `UPDATE kappactl.version SET phase = @to, phase_since = clock_timestamp()
		WHERE job = @job AND number = @number AND phase = @from`,
		pgx.NamedArgs{"job": string(ref.Job), "number": int(ref.Number), "from": string(from), "to": string(to)})
	if err != nil {
		return fmt.Errorf("move %s to %s: %w", ref, to, err)
	}
	if tag.RowsAffected() == 0 {
		return &tryAgain{cause: fmt.Sprintf("%s is no longer %s", ref, from)}
	}
	return nil
}

// becomeLive notes on the version rows what a flip means for them; both are locked and moved by then.
func becomeLive(ctx context.Context, tx *pg.Tx, to job.Ref, from *job.Ref, keepOld time.Duration, back bool) error {
	args := pgx.NamedArgs{"job": string(to.Job), "to": int(to.Number), "keep": pg.Interval(keepOld), "back": back}
	_, err := tx.Exec(ctx, `UPDATE kappactl.version SET standby_until = NULL, rolled_back_at = NULL, paused_at = NULL
		WHERE job = @job AND number = @to`, args)
	if err != nil || from == nil {
		return wrap(err, "note %s as live", to)
	}
	args["from"] = int(from.Number)
	_, err = tx.Exec(ctx, `UPDATE kappactl.version SET standby_until = clock_timestamp() + @keep::interval,
			rolled_back_at = CASE WHEN @back::boolean THEN clock_timestamp() ELSE rolled_back_at END
		WHERE job = @job AND number = @from`, args)
	return wrap(err, "note %s as standby", *from)
}

// endObserving ends the rollback windows that are open for other deployments of the job.
func endObserving(ctx context.Context, tx *pg.Tx, name string, but int64, to job.DeploymentState) error {
	_, err := tx.Exec(ctx, `WITH ended AS (
			UPDATE kappactl.deployment SET state = @to, state_since = clock_timestamp(), ended_at = clock_timestamp(),
				exit_code = NULL, message = '', next_command = ''
			WHERE job = @job AND state = 'observing' AND id <> @but RETURNING id, job, number)
		INSERT INTO kappactl.event (job, number, deployment, kind, message)
		SELECT job, number, id, @to, 'its rollback window ended with the flip away from it' FROM ended`,
		pgx.NamedArgs{"job": name, "but": but, "to": string(to)})
	return wrap(err, "end earlier deployments of %s", name)
}

// promoted notes a flip on the deployment that asked for it. Without a version to go back to it is settled at once.
func promoted(ctx context.Context, tx *pg.Tx, st *state, from *job.Ref, keepOld time.Duration) error {
	to := job.Observing
	if from == nil {
		to = job.Settled
	}
	_, err := tx.Exec(ctx, `UPDATE kappactl.deployment SET state = @to, state_since = clock_timestamp(), promoted_at = clock_timestamp(),
			observe_until = CASE WHEN @to::text = 'observing' THEN clock_timestamp() + @keep::interval END,
			ended_at = CASE WHEN @to::text = 'settled' THEN clock_timestamp() END,
			exit_code = NULL, message = '', next_command = ''
		WHERE id = @id`, pgx.NamedArgs{"id": st.ID, "to": string(to), "keep": pg.Interval(keepOld)})
	return wrap(err, "note deployment %d as promoted", st.ID)
}

// insertFlip makes the deployment of a version that was live before and is promoted by name.
func insertFlip(ctx context.Context, tx *pg.Tx, st *state, from *job.Ref, by string) (int64, error) {
	var previous *int
	if from != nil {
		n := int(from.Number)
		previous = &n
	}
	var id int64
	err := tx.QueryRow(ctx, `INSERT INTO kappactl.deployment (job, number, previous, flip_only, promote, state, created_by)
		VALUES (@job, @number, @previous, true, 'manual', 'waiting', @by) RETURNING id`,
		pgx.NamedArgs{"job": st.Job, "number": st.Number, "previous": previous, "by": by}).Scan(&id)
	return id, wrap(err, "write the deployment of %s", st.ref())
}

// rolledBack notes on the deployment of a version that readers left it.
func rolledBack(ctx context.Context, tx *pg.Tx, from job.Ref, a actor, text string) error {
	var code *int
	next := ""
	if a.request == 0 {
		c := int(job.ExitRolledBack)
		code, next = &c, "correct the cause, then kappactl deploy FILE (the same version needs --again)"
	}
	_, err := tx.Exec(ctx, `UPDATE kappactl.deployment SET state = 'rolled_back', state_since = clock_timestamp(), ended_at = clock_timestamp(),
			exit_code = @code, message = @text, next_command = @next
		WHERE id = (SELECT max(id) FROM kappactl.deployment WHERE job = @job AND number = @number) AND state IN ('observing', 'settled')`,
		pgx.NamedArgs{"job": string(from.Job), "number": int(from.Number), "code": code, "text": text, "next": next})
	return wrap(err, "note the deployment of %s as rolled back", from)
}

func setLive(ctx context.Context, tx *pg.Tx, to job.Ref, contract json.RawMessage) error {
	_, err := tx.Exec(ctx, `UPDATE kappactl.job SET live = @number, contract = @contract::jsonb WHERE name = @job`,
		pgx.NamedArgs{"job": string(to.Job), "number": int(to.Number), "contract": string(contract)})
	return wrap(err, "note %s as live", to)
}

// lockTimeout bounds every wait for a lock in this transaction from here on.
func lockTimeout(ctx context.Context, tx *pg.Tx, d time.Duration) error {
	_, err := tx.Exec(ctx, `SELECT set_config('lock_timeout', @timeout, true)`, pgx.NamedArgs{"timeout": fmt.Sprintf("%dms", d.Milliseconds())})
	return wrap(err, "set lock_timeout")
}

// idleTimeout bounds how long the transaction may stand still between two statements.
func idleTimeout(ctx context.Context, tx *pg.Tx, d time.Duration) error {
	_, err := tx.Exec(ctx, `SELECT set_config('idle_in_transaction_session_timeout', @timeout, true)`, pgx.NamedArgs{"timeout": fmt.Sprintf("%dms", d.Milliseconds())})
	return wrap(err, "set idle_in_transaction_session_timeout")
}

func setPaused(ctx context.Context, tx *pg.Tx, ref job.Ref, paused bool) (bool, error) {
	tag, err := tx.Exec(ctx, `UPDATE kappactl.version SET paused_at = CASE WHEN @paused::boolean THEN clock_timestamp() END
		WHERE job = @job AND number = @number AND (paused_at IS NOT NULL) <> @paused::boolean`,
		pgx.NamedArgs{"job": string(ref.Job), "number": int(ref.Number), "paused": paused})
	return tag.RowsAffected() == 1, wrap(err, "pause or resume %s", ref)
}

// endDeployment ends the deployment of a version whatever its state, unless it has ended.
func endDeployment(ctx context.Context, tx *pg.Tx, id int64, to job.DeploymentState, a Answer) error {
	_, err := tx.Exec(ctx, `UPDATE kappactl.deployment SET state = @to, state_since = clock_timestamp(), ended_at = clock_timestamp(),
			exit_code = nullif(@code::integer, 0), message = @text, next_command = @next
		WHERE id = @id AND ended_at IS NULL`,
		pgx.NamedArgs{"id": id, "to": string(to), "code": int(a.Code), "text": a.Text, "next": a.Next})
	return wrap(err, "end deployment %d", id)
}

// targetGone ends the windows in which readers could have gone back to a version that is retired. Whoever looks after such a deployment
// settles it, and says what its checks came to.
func targetGone(ctx context.Context, tx *pg.Tx, ref job.Ref) error {
	_, err := tx.Exec(ctx, `UPDATE kappactl.deployment SET observe_until = clock_timestamp()
		WHERE job = @job AND state = 'observing' AND previous = @number AND observe_until > clock_timestamp()`,
		pgx.NamedArgs{"job": string(ref.Job), "number": int(ref.Number)})
	return wrap(err, "end the windows over %s", ref)
}

// inherit hands the rollback window of a version's earlier deployment to the one that wrote its view anew.
func inherit(ctx context.Context, tx *pg.Tx, st *state) error {
	args := pgx.NamedArgs{"id": st.ID, "job": st.Job, "number": st.Number}
	_, err := tx.Exec(ctx, `WITH earlier AS (
			UPDATE kappactl.deployment SET state = 'superseded', state_since = clock_timestamp(), ended_at = clock_timestamp()
			WHERE job = @job AND number = @number AND id < @id AND state = 'observing' RETURNING previous, observe_until, promoted_at)
		UPDATE kappactl.deployment d SET state_since = clock_timestamp(), exit_code = NULL, message = '', next_command = '',
			state = CASE WHEN e.observe_until IS NULL THEN 'settled' ELSE 'observing' END,
			ended_at = CASE WHEN e.observe_until IS NULL THEN clock_timestamp() END,
			observe_until = e.observe_until, promoted_at = clock_timestamp(),
			previous = CASE WHEN e.observe_until IS NULL THEN d.previous ELSE e.previous END
		FROM (SELECT 1) one LEFT JOIN earlier e ON true WHERE d.id = @id`, args)
	return wrap(err, "note deployment %d as done", st.ID)
}

// wrap adds what was being done to an error; nil stays nil.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
