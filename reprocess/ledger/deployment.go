package ledger

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
	"github.com/kappactl/kappactl/internal/reason"
)

// Options are the deployment's options column.
type Options struct {
	AllowColumnChange    bool           `json:"allow_column_change,omitempty"`
	AcceptShorterHistory string         `json:"accept_shorter_history,omitempty"`
	LiveIsDown           bool           `json:"live_is_down,omitempty"`
	IgnoreSnapshots      bool           `json:"ignore_snapshots,omitempty"`
	Apply                *PendingChange `json:"apply,omitempty"`
}

// AcceptLoss notes the token by which a loss of history is accepted from now on: offsets are frozen, so they no longer
// move.
func AcceptLoss(ctx context.Context, tx *pg.Tx, st *State, token string) error {
	if token == st.Options().AcceptShorterHistory {
		return nil
	}
	_, err := tx.Exec(ctx, `UPDATE kappactl.deployment SET options = jsonb_set(options, '{accept_shorter_history}', to_jsonb(@token::text))
		WHERE id = @id AND claim = @claim`, pgx.NamedArgs{"id": st.ID, "claim": st.Claim, "token": token})
	return Wrap(err, "note the accepted loss of %s", st.Ref())
}

// Deployment is one roll-out as a waiting command sees it.
type Deployment struct {
	ID         int64               `json:"deployment"`
	Job        job.Name            `json:"job"`
	Number     job.Number          `json:"number"`
	Previous   *int                `json:"previous"` // the version that was live at stage
	FlipOnly   bool                `json:"flip_only"`
	Until      string              `json:"until"`
	Promote    string              `json:"promote"`
	State      job.DeploymentState `json:"state"`
	Phase      job.Phase           `json:"phase"`
	PhaseSince time.Time           `json:"phase_since"`
	Verdict    job.Verdict         `json:"verdict"`
	Reason     reason.Reason       `json:"-"` // of the verdict
	Paused     bool                `json:"paused"`
	// ExitCode is set when the deployment ended badly or cannot go on without a person; Message then says why and Next
	// what to run.
	ExitCode         *int          `json:"exit_code"`
	Message          string        `json:"message" db:"-"`
	MessageCode      reason.Code   `json:"message_code" db:"-"`
	Next             string        `json:"next"`
	Records          int64         `json:"records"`              // processed by the version so far
	VersionError     string        `json:"version_error" db:"-"` // of a version that failed
	VersionErrorCode reason.Code   `json:"version_error_code" db:"-"`
	VersionEnded     *time.Time    `json:"version_ended"`
	CreatedAt        time.Time     `json:"created_at"`
	PromotedAt       *time.Time    `json:"promoted_at"`
	ObserveUntil     *time.Time    `json:"observe_until"`
	EndedAt          *time.Time    `json:"ended_at"`
	Warning          reason.Reason `json:"-"` // the last one in its history; zero: none
	Live             *int          `json:"-"` // the version that is live now
	Outdated         bool          `json:"-"` // its promote would be refused: another version is live than at stage
}

// deploymentRow is a Deployment with the reasons that its texts are rendered from.
type deploymentRow struct {
	Deployment
	MessageReason reason.Reason
	ErrorReason   reason.Reason
}

func (r deploymentRow) rendered() Deployment {
	d := r.Deployment
	if d.Outdated {
		a := LiveChanged(d.Ref(), d.Live)
		d.ExitCode, r.MessageReason, d.Next = a.exitCode(), a.Reason, a.Next
	}
	d.Message, d.MessageCode = r.MessageReason.Text(), r.MessageReason.Code
	d.VersionError, d.VersionErrorCode = r.ErrorReason.Text(), r.ErrorReason.Code
	return d
}

// Ref is the version that the deployment is about.
func (d Deployment) Ref() job.Ref { return job.Ref{Job: d.Job, Number: d.Number} }

// Outcome says whether a command that waits for goal (staged, caught_up, verified, live, settled, retired) is done, and
// with which exit code. An empty goal is where the deployment stops by itself.
func (d Deployment) Outcome(goal string) (code job.ExitCode, done bool) {
	switch {
	case goal == "retired" && !d.ended():
		return job.ExitOK, d.Phase == job.Retired
	case d.reached(goal):
		return job.ExitOK, true
	case d.State == job.RolledBack && d.ExitCode != nil:
		return job.ExitCode(*d.ExitCode), true
	case d.ExitCode != nil:
		return job.ExitCode(*d.ExitCode), true
	case d.State.Ended():
		return job.ExitFailed, true
	}
	return job.ExitOK, false
}

func (d Deployment) reached(goal string) bool {
	flipped := d.PromotedAt != nil
	switch goal {
	case "settled":
		return d.State == job.Settled && d.ExitCode == nil
	case "live": // now, whatever came between: another version may have been promoted over it, or this one again
		return flipped && d.Phase == job.Live
	case "verified":
		return flipped || d.Phase == job.Verified || d.standbyAt("verified", "live", "")
	case "caught_up":
		return flipped || d.Phase == job.CaughtUp || d.Phase == job.Verified ||
			d.standbyAt("caught_up", "verified", "live", "")
	case "staged":
		return d.Phase != job.Staged && !d.ended() || d.State == job.Waiting
	}
	return d.ExitCode == nil && (d.State == job.Waiting || d.State == job.Observing || d.State == job.Settled)
}

// standbyAt reports that the deployment of a standby version has come to one of the goals that were asked for: its
// phase stays standby.
func (d Deployment) standbyAt(goals ...string) bool {
	return d.Phase == job.Standby && d.FlipOnly && d.State == job.Waiting && d.ExitCode == nil &&
		slices.Contains(goals, d.Until)
}

func (d Deployment) ended() bool { return d.Phase == job.Failed || d.Phase == job.Aborted }

// Deployment reads one deployment; ErrNotFound when there is none.
func (s *Store) Deployment(ctx context.Context, id int64) (Deployment, error) {
	rows, err := s.pool.Query(ctx, `SELECT d.id, d.job, d.number, d.previous, d.flip_only, d.until, d.promote, d.state,
			v.phase, v.phase_since, v.verdict, v.reason, v.paused_at IS NOT NULL AS paused,
			d.exit_code, d.message AS message_reason, d.next_command AS next, v.error AS error_reason, v.ended_at AS version_ended,
			d.created_at, d.promoted_at, d.observe_until, d.ended_at, coalesce((`+lastWarning+`), '{}') AS warning, j.live, `+OutdatedColumn+`,
			coalesce((SELECT sum(p.records) FROM kappactl.position p WHERE p.job = d.job AND p.number = d.number), 0)::bigint
			+ coalesce((SELECT sum(g.records) FROM kappactl.segment g WHERE g.job = d.job AND g.number = d.number AND g.state = 'done'
				AND v.phase IN ('replaying', 'building')), 0)::bigint AS records
		FROM kappactl.deployment d JOIN kappactl.version v USING (job, number) JOIN kappactl.job j ON j.name = d.job WHERE d.id = @id`, pgx.NamedArgs{"id": id})
	if err != nil {
		return Deployment{}, fmt.Errorf("read deployment %d: %w", id, err)
	}
	row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[deploymentRow])
	if errors.Is(err, pgx.ErrNoRows) {
		return Deployment{}, fmt.Errorf("deployment %d: %w", id, ErrNotFound)
	}
	if err != nil {
		return Deployment{}, fmt.Errorf("read deployment %d: %w", id, err)
	}
	return row.rendered(), nil
}

// Fence locks the deployment under its claim, so that what the transaction writes is written by its only controller.
func Fence(ctx context.Context, tx *pg.Tx, st *State) error {
	held, err := LockDeployment(ctx, tx, st.ID, st.Claim, "")
	if err == nil && !held {
		return ErrLost
	}
	return err
}

// NewestDeployment is the id of the deployment that governs a version; ErrNotFound when the version is unknown.
func (s *Store) NewestDeployment(ctx context.Context, ref job.Ref) (int64, error) {
	id, err := NewestDeployment(ctx, s.pool, string(ref.Job), int(ref.Number))
	if err == nil && id == 0 {
		return 0, unknownVersion(ref)
	}
	return id, err
}

// NewestDeployment is the id of the newest deployment of a version, 0 when it has none.
func NewestDeployment(ctx context.Context, db pg.DB, name string, number int) (int64, error) {
	var id int64
	err := db.QueryRow(ctx, `SELECT coalesce(max(id), 0) FROM kappactl.deployment WHERE job = @job AND number = @number`,
		pgx.NamedArgs{"job": name, "number": number}).Scan(&id)
	if err != nil {
		return 0, fmt.Errorf("read deployments of %s/v%d: %w", name, number, err)
	}
	return id, nil
}

// OpenDeployment is a deployment that is rolling out or waiting.
type OpenDeployment struct {
	ID       int64
	Number   int
	FlipOnly bool
	Promote  string
	Previous *int // the version that was live at stage
	State    job.DeploymentState
	Phase    job.Phase
}

// OpenDeployments are the deployments of a job that are rolling out or waiting.
func OpenDeployments(ctx context.Context, db pg.DB, name string) ([]OpenDeployment, error) {
	rows, err := db.Query(ctx, `SELECT d.id, d.number, d.flip_only, d.promote, d.previous, d.state, v.phase
		FROM kappactl.deployment d JOIN kappactl.version v USING (job, number)
		WHERE d.job = @job AND d.state IN ('rolling_out', 'waiting') ORDER BY d.id DESC`, pgx.NamedArgs{"job": name})
	if err != nil {
		return nil, fmt.Errorf("read deployments: %w", err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByName[OpenDeployment])
	if err != nil {
		return nil, fmt.Errorf("read deployments: %w", err)
	}
	return out, nil
}

// NewDeployment is a deployment that begins, or what one that is under way is to do from now on.
type NewDeployment struct {
	Job      string
	Number   int
	Previous *int // the version that is live
	FlipOnly bool
	Until    string
	Promote  job.PromoteMode
	Options  Options
	By       string
}

// InsertDeployment writes a deployment that is rolling out and returns its id.
func InsertDeployment(ctx context.Context, tx *pg.Tx, d NewDeployment) (int64, error) {
	options, err := json.Marshal(d.Options)
	if err != nil {
		return 0, fmt.Errorf("encode options: %w", err)
	}
	var id int64
	err = tx.QueryRow(ctx, `INSERT INTO kappactl.deployment (job, number, previous, flip_only, until, promote, state, options, created_by)
		VALUES (@job, @number, @previous, @flip_only, @until, @promote, @state, @options::jsonb, @by) RETURNING id`,
		pgx.NamedArgs{
			"job": d.Job, "number": d.Number, "previous": d.Previous, "flip_only": d.FlipOnly, "until": d.Until,
			"promote": string(d.Promote), "state": string(job.RollingOut), "options": string(options), "by": d.By,
		}).Scan(&id)
	if pg.Code(err) == UniqueViolation {
		return 0, RefuseFor(job.ExitConflict, "kappactl status "+d.Job, reason.DeploymentRolling(job.Name(d.Job)))
	}
	if err != nil {
		return 0, fmt.Errorf("write deployment: %w", err)
	}
	return id, nil
}

// InsertFlip makes the deployment of a version that was live before and is promoted by name.
func InsertFlip(ctx context.Context, tx *pg.Tx, st *State, from *job.Ref, a Actor) (int64, error) {
	var previous *int
	if from != nil {
		n := int(from.Number)
		previous = &n
	}
	var id int64
	err := tx.QueryRow(ctx, `INSERT INTO kappactl.deployment (job, number, previous, flip_only, promote, state, created_by, session_role)
		VALUES (@job, @number, @previous, true, 'manual', 'waiting', @by, coalesce(nullif(@role, ''), session_user)) RETURNING id`,
		pgx.NamedArgs{"job": st.Job, "number": st.Number, "previous": previous, "by": a.By, "role": a.Role}).Scan(&id)
	return id, Wrap(err, "write the deployment of %s", st.Ref())
}

// ResumeDeployment sets what an open deployment is to do from now on, forgets an earlier outcome, and compares with
// what is live now. Checks that were run beside another live version are to run again.
func ResumeDeployment(ctx context.Context, tx *pg.Tx, id int64, d NewDeployment) error {
	options, err := json.Marshal(d.Options)
	if err != nil {
		return fmt.Errorf("encode options: %w", err)
	}
	if err := forgetChecks(ctx, tx, id, d.Previous); err != nil {
		return err
	}
	from, to := steps(Redeployed)
	_, err = tx.Exec(ctx, `UPDATE kappactl.deployment SET until = @until, promote = @promote, previous = @previous,
			options = options || jsonb_strip_nulls(@options::jsonb), exit_code = NULL, message = '{}', next_command = '',
			state = CASE WHEN @promote::text = 'auto' OR exit_code IS NOT NULL OR until <> @until OR previous IS DISTINCT FROM @previous
				THEN coalesce((SELECT s.after FROM unnest(@from::text[], @to::text[]) AS s (before, after) WHERE s.before = state), state)
				ELSE state END,
			state_since = clock_timestamp()
		WHERE id = @id AND state IN ('rolling_out', 'waiting')`,
		pgx.NamedArgs{
			"id": id, "until": d.Until, "promote": string(d.Promote), "previous": d.Previous, "options": string(options),
			"from": from, "to": to,
		})
	return Wrap(err, "resume deployment %d", id)
}

// EndWindowsOver ends the windows in which readers could have gone back to a version that is retired. The agent that
// carries out such a deployment settles it, and says what its checks came to.
func EndWindowsOver(ctx context.Context, tx *pg.Tx, ref job.Ref) error {
	_, err := tx.Exec(ctx, `UPDATE kappactl.deployment SET observe_until = clock_timestamp()
		WHERE job = @job AND state = 'observing' AND previous = @number AND observe_until > clock_timestamp()`,
		pgx.NamedArgs{"job": string(ref.Job), "number": int(ref.Number)})
	return Wrap(err, "end the windows over %s", ref)
}

// ForgetGap takes back that a deployment cannot go on because of a gap: who waits for it waits again.
func ForgetGap(ctx context.Context, tx *pg.Tx, ref job.Ref) error {
	_, err := tx.Exec(ctx, `UPDATE kappactl.deployment SET exit_code = NULL, message = '{}', next_command = ''
		WHERE job = @job AND number = @number AND exit_code = @code AND ended_at IS NULL`,
		pgx.NamedArgs{"job": string(ref.Job), "number": int(ref.Number), "code": int(job.ExitGap)})
	if err != nil {
		return fmt.Errorf("forget the gap of %s: %w", ref, err)
	}
	return nil
}

// Newest is the newest deployment of a job; nil when it has none.
func (s *Store) Newest(ctx context.Context, name job.Name) (*Deployment, error) {
	var id int64
	err := s.pool.QueryRow(ctx, `SELECT coalesce(max(id), 0) FROM kappactl.deployment WHERE job = @job`,
		pgx.NamedArgs{"job": string(name)}).Scan(&id)
	if err != nil {
		return nil, fmt.Errorf("read the newest deployment of %s: %w", name, err)
	}
	if id == 0 {
		return nil, nil
	}
	d, err := s.Deployment(ctx, id)
	return &d, err
}

// Window is a rollback window that is open.
type Window struct {
	ID           int64
	Number       int
	Previous     *int
	ObserveUntil *time.Time
}

// OpenWindows are the rollback windows that a flip to the version would end.
func OpenWindows(ctx context.Context, db pg.DB, st *State) ([]Window, error) {
	found, err := pg.Structs[Window](ctx, db, `SELECT id, number, previous, observe_until FROM kappactl.deployment
		WHERE job = @job AND state = 'observing' AND number <> @number ORDER BY id`, pgx.NamedArgs{"job": st.Job, "number": st.Number})
	return found, Wrap(err, "read the rollback windows of %s", st.Job)
}

// SetMessage writes beside a deployment's state what a person should know, and the next command; zero: nothing.
func SetMessage(ctx context.Context, tx *pg.Tx, st *State, message reason.Reason, next string) error {
	_, err := tx.Exec(ctx, `UPDATE kappactl.deployment SET message = @message, next_command = @next
		WHERE id = @id AND claim = @claim AND ended_at IS NULL`,
		pgx.NamedArgs{"id": st.ID, "claim": st.Claim, "message": message, "next": next})
	return Wrap(err, "note on deployment %d", st.ID)
}
