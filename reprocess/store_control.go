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

// state is everything a controller decides by, read in one statement.
type state struct {
	// the deployment
	ID           int64
	Job          string
	Number       int
	Previous     *int
	FlipOnly     bool
	Until        string
	Promote      string
	State        job.DeploymentState
	Options      string
	ObserveUntil *time.Time
	ExitCode     *int
	Message      string
	Newest       int64
	By           string
	// the version
	Spec         string
	Layout       string
	Phase        job.Phase
	PhaseSince   time.Time
	PausedAt     *time.Time
	PinnedAt     *time.Time
	Verdict      job.Verdict
	Reason       string
	FrozenAt     *time.Time
	StandbyUntil *time.Time
	StaleSince   *time.Time
	EndedAt      *time.Time
	KeepTable    bool
	// the job
	Live       *int
	ViewSchema string
	ViewName   string
	Contract   *string
	Now        time.Time // the database's clock

	spec   job.Spec
	layout job.Layout
	claim  int64
}

func (st *state) ref() job.Ref       { return job.Ref{Job: job.Name(st.Job), Number: job.Number(st.Number)} }
func (st *state) isLive() bool       { return st.Live != nil && *st.Live == st.Number }
func (st *state) schema() string     { return st.ViewSchema }
func (st *state) view() job.ViewName { return job.ViewName{Schema: st.ViewSchema, Name: st.ViewName} }

func (st *state) jobRow() jobRow {
	return jobRow{Name: st.Job, ViewSchema: st.ViewSchema, ViewName: st.ViewName, Live: st.Live, Contract: st.Contract}
}

func (st *state) liveRef() *job.Ref {
	if st.Live == nil {
		return nil
	}
	return &job.Ref{Job: job.Name(st.Job), Number: job.Number(*st.Live)}
}

func (st *state) options() options {
	var o options
	_ = json.Unmarshal([]byte(st.Options), &o) // written by us; an unreadable one has no option set
	return o
}

// open says that the deployment is still on its way to the flip.
func (st *state) open() bool { return st.State == job.RollingOut || st.State == job.Waiting }

func (st *state) entry(kind, format string, args ...any) entry {
	return entry{Job: st.Job, Number: st.Number, Deployment: st.ID, Kind: kind, Message: fmt.Sprintf(format, args...)}
}

const stateColumns = `SELECT d.id, d.job, d.number, d.previous, d.flip_only, d.until, d.promote, d.state,
			d.options::text AS options, d.observe_until, d.exit_code, d.message, d.created_by AS by,
			(SELECT max(n.id) FROM kappactl.deployment n WHERE n.job = d.job AND n.number = d.number) AS newest,
			v.spec::text AS spec, v.layout::text AS layout, v.phase, v.phase_since, v.paused_at, v.pinned_at, v.verdict, v.reason,
			v.frozen_at, v.standby_until, v.stale_since, v.ended_at, v.keep_table,
			j.live, j.view_schema, j.view_name, j.contract::text AS contract, clock_timestamp() AS now
		FROM kappactl.deployment d
		JOIN kappactl.version v ON v.job = d.job AND v.number = d.number
		JOIN kappactl.job j ON j.name = d.job `

// loadState reads a deployment under its claim; errGone when somebody else holds it or a newer deployment governs the
// version.
func loadState(ctx context.Context, db pg.DB, id, claim int64) (*state, error) {
	rows, err := collect[state](ctx, db, stateColumns+`WHERE d.id = @id AND d.claim = @claim`, pgx.NamedArgs{"id": id, "claim": claim})
	if err != nil {
		return nil, fmt.Errorf("read deployment %d: %w", id, err)
	}
	if len(rows) == 0 || rows[0].Newest != id {
		return nil, errGone
	}
	rows[0].claim = claim
	return rows[0].decoded()
}

// readState reads a version with the deployment that governs it, without a claim: for acts on request.
func readState(ctx context.Context, db pg.DB, ref job.Ref) (*state, error) {
	rows, err := collect[state](ctx, db, stateColumns+`WHERE d.job = @job AND d.number = @number ORDER BY d.id DESC LIMIT 1`,
		pgx.NamedArgs{"job": string(ref.Job), "number": int(ref.Number)})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", ref, err)
	}
	if len(rows) == 0 {
		return nil, unknownVersion(ref)
	}
	return rows[0].decoded()
}

func (st *state) decoded() (*state, error) {
	if err := json.Unmarshal([]byte(st.Spec), &st.spec); err != nil {
		return nil, fmt.Errorf("decode spec of %s: %w", st.ref(), err)
	}
	if err := json.Unmarshal([]byte(st.Layout), &st.layout); err != nil {
		return nil, fmt.Errorf("decode layout of %s: %w", st.ref(), err)
	}
	return st, nil
}

// move takes a version from the phase it was read in to the one that follows on, fenced by the deployment's claim.
func move(ctx context.Context, db pg.DB, st *state, on Event) error {
	to, ok := Next(st.Phase, on)
	if !ok {
		return fmt.Errorf("%s is %s: %q means nothing there: %w", st.ref(), st.Phase, on, errLost)
	}
	tag, err := db.Exec(ctx, `UPDATE kappactl.version v SET phase = @to, phase_since = clock_timestamp(),
			frozen_at = CASE WHEN @to::text = 'replaying' THEN clock_timestamp() ELSE v.frozen_at END,
			built_xid = CASE WHEN @to::text = 'catching_up' AND @from::text = 'building' THEN pg_current_xact_id() ELSE v.built_xid END
		FROM kappactl.deployment d
		WHERE v.job = @job AND v.number = @number AND v.phase = @from AND v.paused_at IS NOT DISTINCT FROM @paused::timestamptz
		  AND d.id = @id AND d.claim = @claim AND d.job = v.job AND d.number = v.number`,
		pgx.NamedArgs{
			"job": st.Job, "number": st.Number, "from": string(st.Phase), "to": string(to), "paused": st.PausedAt,
			"id": st.ID, "claim": st.claim,
		})
	if err != nil {
		return fmt.Errorf("move %s to %s: %w", st.ref(), to, err)
	}
	if tag.RowsAffected() == 0 {
		return errLost
	}
	e := st.entry("phase", "%s → %s: %s", st.Phase, to, on)
	e.Detail = map[string]string{"from": string(st.Phase), "to": string(to)}
	return addEvent(ctx, db, e)
}

// setState moves a deployment from the state it was read in, with what a waiting command is to say.
func setState(ctx context.Context, db pg.DB, st *state, to job.DeploymentState, a *Answer) error {
	if a == nil {
		a = &Answer{}
	}
	var code *int
	if a.Code != job.ExitOK {
		c := int(a.Code)
		code = &c
	}
	tag, err := db.Exec(ctx, `UPDATE kappactl.deployment SET state = @to,
			state_since = CASE WHEN state = @to THEN state_since ELSE clock_timestamp() END,
			exit_code = @code, message = @message, next_command = @next,
			ended_at = CASE WHEN @ended::boolean THEN clock_timestamp() ELSE ended_at END
		WHERE id = @id AND claim = @claim AND state = @from`,
		pgx.NamedArgs{
			"id": st.ID, "claim": st.claim, "from": string(st.State), "to": string(to), "code": code, "message": a.Text,
			"next": a.Next, "ended": to.Ended(),
		})
	if err != nil {
		return fmt.Errorf("move deployment %d to %s: %w", st.ID, to, err)
	}
	if tag.RowsAffected() == 0 {
		return errLost
	}
	return nil
}

// failVersion ends a candidate and its deployment; what it leaves behind is cleaned up after.
func failVersion(ctx context.Context, tx *pg.Tx, st *state, a Answer) error {
	if err := move(ctx, tx, st, CannotGoOn); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `UPDATE kappactl.version SET exit_code = @code, error = @text, verdict = 'unhealthy', reason = @text,
			verdict_since = clock_timestamp() WHERE job = @job AND number = @number`,
		pgx.NamedArgs{"job": st.Job, "number": st.Number, "code": int(a.Code), "text": a.Text})
	if err != nil {
		return fmt.Errorf("fail %s: %w", st.ref(), err)
	}
	if st.State.Ended() {
		return nil
	}
	return setState(ctx, tx, st, job.DeployFailed, &a)
}

// working counts the leases that workers still hold on a version.
func working(ctx context.Context, db pg.DB, st *state) (int, error) {
	var n int
	err := db.QueryRow(ctx, `SELECT
			(SELECT count(*) FROM kappactl.position WHERE job = @job AND number = @number AND lease > clock_timestamp())
			+ (SELECT count(*) FROM kappactl.segment WHERE job = @job AND number = @number AND lease > clock_timestamp() AND state = 'claimed')`,
		pgx.NamedArgs{"job": st.Job, "number": st.Number}).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count workers of %s: %w", st.ref(), err)
	}
	return n, nil
}

// endVersion notes that nothing of a version is left.
func endVersion(ctx context.Context, tx *pg.Tx, st *state) error {
	if st.Phase == job.Retiring {
		if err := move(ctx, tx, st, Cleaned); err != nil {
			return err
		}
	}
	args := pgx.NamedArgs{"job": st.Job, "number": st.Number, "id": st.ID, "claim": st.claim}
	tag, err := tx.Exec(ctx, `UPDATE kappactl.version v SET ended_at = clock_timestamp() FROM kappactl.deployment d
		WHERE v.job = @job AND v.number = @number AND v.ended_at IS NULL AND d.id = @id AND d.claim = @claim`, args)
	if err != nil {
		return fmt.Errorf("end %s: %w", st.ref(), err)
	}
	if tag.RowsAffected() == 0 {
		return errLost
	}
	if _, err := tx.Exec(ctx, `DELETE FROM kappactl.observation WHERE job = @job AND number = @number`, args); err != nil {
		return fmt.Errorf("end %s: %w", st.ref(), err)
	}
	return nil
}

// noted says whether an event of this kind was written for the version, and how many times.
func noted(ctx context.Context, db pg.DB, st *state, kind string) (int, error) {
	var n int
	err := db.QueryRow(ctx, `SELECT count(*) FROM kappactl.event WHERE job = @job AND number = @number AND kind = @kind`,
		pgx.NamedArgs{"job": st.Job, "number": st.Number, "kind": kind}).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("read events of %s: %w", st.ref(), err)
	}
	return n, nil
}

// specOf reads another version's job file.
func specOf(ctx context.Context, db pg.DB, ref job.Ref) (*job.Spec, job.Layout, error) {
	var spec, layout string
	err := db.QueryRow(ctx, `SELECT spec::text, layout::text FROM kappactl.version WHERE job = @job AND number = @number`,
		pgx.NamedArgs{"job": string(ref.Job), "number": int(ref.Number)}).Scan(&spec, &layout)
	if err != nil {
		return nil, job.Layout{}, fmt.Errorf("read spec of %s: %w", ref, err)
	}
	var s job.Spec
	var l job.Layout
	if err := json.Unmarshal([]byte(spec), &s); err != nil {
		return nil, l, fmt.Errorf("decode spec of %s: %w", ref, err)
	}
	if err := json.Unmarshal([]byte(layout), &l); err != nil {
		return nil, l, fmt.Errorf("decode layout of %s: %w", ref, err)
	}
	return &s, l, nil
}
