package reprocess

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// keepAccepted notes the token by which a loss of history is accepted from now on: offsets are frozen, so they no longer move.
func keepAccepted(ctx context.Context, tx *pg.Tx, st *state, token string) error {
	if token == st.options().AcceptShorterHistory {
		return nil
	}
	_, err := tx.Exec(ctx, `UPDATE kappactl.deployment SET options = jsonb_set(options, '{accept_shorter_history}', to_jsonb(@token::text))
		WHERE id = @id AND claim = @claim`, pgx.NamedArgs{"id": st.ID, "claim": st.claim, "token": token})
	return wrap(err, "note the accepted loss of %s", st.ref())
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
	Reason     string              `json:"reason"`
	Paused     bool                `json:"paused"`
	// ExitCode is set when the deployment ended badly or cannot go on without a person; Message then says why and Next
	// what to run.
	ExitCode     *int       `json:"exit_code"`
	Message      string     `json:"message"`
	Next         string     `json:"next"`
	Records      int64      `json:"records"`       // processed by the version so far
	VersionError string     `json:"version_error"` // of a version that failed
	VersionEnded *time.Time `json:"version_ended"`
	CreatedAt    time.Time  `json:"created_at"`
	PromotedAt   *time.Time `json:"promoted_at"`
	ObserveUntil *time.Time `json:"observe_until"`
	EndedAt      *time.Time `json:"ended_at"`
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
	case "live":
		return flipped && d.State != job.RolledBack
	case "verified":
		return flipped || d.Phase == job.Verified
	case "caught_up":
		return flipped || d.Phase == job.CaughtUp || d.Phase == job.Verified
	case "staged":
		return d.Phase != job.Staged && !d.ended() || d.State == job.Waiting
	}
	return d.ExitCode == nil && (d.State == job.Waiting || d.State == job.Observing || d.State == job.Settled)
}

func (d Deployment) ended() bool { return d.Phase == job.Failed || d.Phase == job.Aborted }

// Deployment reads one deployment; ErrNotFound when there is none.
func (s *Store) Deployment(ctx context.Context, id int64) (Deployment, error) {
	rows, err := s.pool.Query(ctx, `SELECT d.id, d.job, d.number, d.previous, d.flip_only, d.until, d.promote, d.state,
			v.phase, v.phase_since, v.verdict, v.reason, v.paused_at IS NOT NULL AS paused,
			d.exit_code, d.message, d.next_command AS next, v.error AS version_error, v.ended_at AS version_ended,
			d.created_at, d.promoted_at, d.observe_until, d.ended_at,
			coalesce((SELECT sum(p.records) FROM kappactl.position p WHERE p.job = d.job AND p.number = d.number), 0)::bigint
			+ coalesce((SELECT sum(g.records) FROM kappactl.segment g WHERE g.job = d.job AND g.number = d.number AND g.state = 'done'
				AND v.phase IN ('replaying', 'building')), 0)::bigint AS records
		FROM kappactl.deployment d JOIN kappactl.version v USING (job, number) WHERE d.id = @id`, pgx.NamedArgs{"id": id})
	if err != nil {
		return Deployment{}, fmt.Errorf("read deployment %d: %w", id, err)
	}
	d, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Deployment])
	if errors.Is(err, pgx.ErrNoRows) {
		return Deployment{}, fmt.Errorf("deployment %d: %w", id, ErrNotFound)
	}
	if err != nil {
		return Deployment{}, fmt.Errorf("read deployment %d: %w", id, err)
	}
	return d, nil
}

// NewestDeployment is the id of the deployment that governs a version; ErrNotFound when the version is unknown.
func (s *Store) NewestDeployment(ctx context.Context, ref job.Ref) (int64, error) {
	id, err := newestDeployment(ctx, s.pool, string(ref.Job), int(ref.Number))
	if err == nil && id == 0 {
		return 0, unknownVersion(ref)
	}
	return id, err
}

func newestDeployment(ctx context.Context, db pg.DB, name string, number int) (int64, error) {
	var id int64
	err := db.QueryRow(ctx, `SELECT coalesce(max(id), 0) FROM kappactl.deployment WHERE job = @job AND number = @number`,
		pgx.NamedArgs{"job": name, "number": number}).Scan(&id)
	if err != nil {
		return 0, fmt.Errorf("read deployments of %s/v%d: %w", name, number, err)
	}
	return id, nil
}

// openDeployment is a deployment that is rolling out or waiting.
type openDeployment struct {
	ID       int64
	Number   int
	FlipOnly bool
	Promote  string
	State    job.DeploymentState
}

func openDeployments(ctx context.Context, db pg.DB, name string) ([]openDeployment, error) {
	rows, err := db.Query(ctx, `SELECT id, number, flip_only, promote, state FROM kappactl.deployment
		WHERE job = @job AND state IN ('rolling_out', 'waiting') ORDER BY id DESC`, pgx.NamedArgs{"job": name})
	if err != nil {
		return nil, fmt.Errorf("read deployments: %w", err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByName[openDeployment])
	if err != nil {
		return nil, fmt.Errorf("read deployments: %w", err)
	}
	return out, nil
}

func insertDeployment(ctx context.Context, tx *pg.Tx, in Staging, j jobRow, number int, flipOnly bool, promote job.PromoteMode) (int64, error) {
	var id int64
	err := tx.QueryRow(ctx, `INSERT INTO kappactl.deployment (job, number, previous, flip_only, until, promote, state, options, created_by)
		VALUES (@job, @number, @previous, @flip_only, @until, @promote, @state, @options::jsonb, @by) RETURNING id`,
		pgx.NamedArgs{
			"job": j.Name, "number": number, "previous": j.Live, "flip_only": flipOnly, "until": in.Until, "promote": string(promote),
			"state": string(job.RollingOut), "options": in.options(), "by": in.By,
		}).Scan(&id)
	if pg.Code(err) == uniqueViolation {
		return 0, refuse(job.ExitConflict, "kappactl status "+j.Name, "another deployment of %s is rolling out; a job has one at a time", j.Name)
	}
	if err != nil {
		return 0, fmt.Errorf("write deployment: %w", err)
	}
	return id, nil
}

// resumeDeployment takes over the newest wish, forgets an earlier outcome, and compares with what is live now.
func resumeDeployment(ctx context.Context, tx *pg.Tx, id int64, live *int, promote job.PromoteMode, in Staging) error {
	_, err := tx.Exec(ctx, `UPDATE kappactl.deployment SET until = @until, promote = @promote, previous = @previous,
			options = options || jsonb_strip_nulls(@options::jsonb), exit_code = NULL, message = '', next_command = '',
			state = CASE WHEN state = 'waiting' AND (@promote::text = 'auto' OR exit_code IS NOT NULL OR until <> @until) THEN 'rolling_out' ELSE state END,
			state_since = clock_timestamp()
		WHERE id = @id AND state IN ('rolling_out', 'waiting')`,
		pgx.NamedArgs{"id": id, "until": in.Until, "promote": string(promote), "previous": live, "options": in.options()})
	if err != nil {
		return fmt.Errorf("resume deployment %d: %w", id, err)
	}
	return nil
}
