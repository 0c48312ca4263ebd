package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
)

// State is everything a controller decides by, read in one statement.
type State struct {
	// the deployment
	ID           int64
	Job          string
	Number       int
	Previous     *int
	FlipOnly     bool
	Until        string
	Promote      string
	State        job.DeploymentState
	OptionsJSON  string
	ObserveUntil *time.Time
	ExitCode     *int
	Message      reason.Reason
	Newest       int64
	Held         int64 // the claim that the row has
	By           string
	Role         string // the database role of By
	// the version
	SpecJSON     string
	LayoutJSON   string
	Phase        job.Phase
	PhaseSince   time.Time
	PausedAt     *time.Time
	PinnedAt     *time.Time
	Verdict      job.Verdict
	Reason       reason.Reason
	FrozenAt     *time.Time
	StandbyUntil *time.Time
	StaleSince   *time.Time
	EndedAt      *time.Time
	KeepTable    bool
	Warnings     []reason.Reason
	// the job
	Live         *int
	ViewSchema   string
	ViewName     string
	ContractJSON *string
	Arms         []string  // of the running experiment of the job, the control first; none without one
	Now          time.Time // the database's clock
	Digest       string    // of all but the clock

	Spec   job.Spec   `db:"-"` // SpecJSON
	Layout job.Layout `db:"-"` // LayoutJSON
	Claim  int64      `db:"-"` // of the deployment; 0 when it was read without one
}

// Ref is the version.
func (st *State) Ref() job.Ref { return job.Ref{Job: job.Name(st.Job), Number: job.Number(st.Number)} }

// IsLive reports whether readers see the version.
func (st *State) IsLive() bool { return st.Live != nil && *st.Live == st.Number }

// Schema is the schema of the view and the version tables.
func (st *State) Schema() string { return st.ViewSchema }

// Version is the deployment's version, with the layout of its table.
func (st *State) Version() job.Version {
	return job.Version{Ref: st.Ref(), Schema: st.ViewSchema, Layout: st.Layout}
}

// View is the job's serving view.
func (st *State) View() job.ViewName { return job.ViewName{Schema: st.ViewSchema, Name: st.ViewName} }

// JobRow is the job as the state knows it.
func (st *State) JobRow() JobRow {
	return JobRow{
		Name: st.Job, ViewSchema: st.ViewSchema, ViewName: st.ViewName, Live: st.Live,
		ContractJSON: st.ContractJSON,
	}
}

// LiveRef is the version that readers see, nil when there is none.
func (st *State) LiveRef() *job.Ref {
	if st.Live == nil {
		return nil
	}
	return &job.Ref{Job: job.Name(st.Job), Number: job.Number(*st.Live)}
}

// Options are the deployment's options.
func (st *State) Options() Options {
	var o Options
	_ = json.Unmarshal([]byte(st.OptionsJSON), &o) // written by us; an unreadable one has no option set
	return o
}

// Open reports whether the deployment is still on its way to the flip.
func (st *State) Open() bool { return st.State == job.RollingOut || st.State == job.Waiting }

// Entry is a history entry of the deployment.
func (st *State) Entry(kind EventKind, message reason.Reason) Entry {
	return Entry{Job: st.Job, Number: st.Number, Deployment: st.ID, Kind: kind, Message: message}
}

// stateDigest changes with every change of a state. Every write of a row of version or job gives it another xmin; of a
// deployment the lease is left out, which is renewed all the time.
const stateDigest = `md5(ROW(v.xmin, j.xmin, d.number, d.previous, d.flip_only, d.until, d.promote, d.state, d.options, d.observe_until,
			d.exit_code, d.message, d.created_by, d.session_role)::text)`

const stateColumns = `SELECT d.id, d.job, d.number, d.previous, d.flip_only, d.until, d.promote, d.state,
			d.options::text AS options_json, d.observe_until, d.exit_code, d.message, d.claim AS held, d.created_by AS by, d.session_role AS role,
			(SELECT max(n.id) FROM kappactl.deployment n WHERE n.job = d.job AND n.number = d.number) AS newest,
			v.spec::text AS spec_json, v.layout::text AS layout_json, v.phase, v.phase_since, v.paused_at, v.pinned_at, v.verdict, v.reason,
			v.frozen_at, v.standby_until, v.stale_since, v.ended_at, v.keep_table, v.warnings,
			j.live, j.view_schema, j.view_name, j.contract::text AS contract_json,
			coalesce((SELECT t.arms FROM kappactl.route t WHERE t.job = d.job), '{}') AS arms, clock_timestamp() AS now,
			` + stateDigest + ` AS digest
		FROM kappactl.deployment d
		JOIN kappactl.version v ON v.job = d.job AND v.number = d.number
		JOIN kappactl.job j ON j.name = d.job `

// LoadState reads a deployment under its claim; ErrGone when somebody else holds it or a newer deployment governs the
// version.
func LoadState(ctx context.Context, db pg.DB, id, claim int64) (*State, error) {
	rows, err := pg.Structs[State](ctx, db, stateColumns+`WHERE d.id = @id AND d.claim = @claim`,
		pgx.NamedArgs{"id": id, "claim": claim})
	if err != nil {
		return nil, fmt.Errorf("read deployment %d: %w", id, err)
	}
	if len(rows) == 0 || rows[0].Newest != id {
		return nil, ErrGone
	}
	rows[0].Claim = claim
	return rows[0].decoded()
}

// ReadState reads a version with the deployment that governs it, without a claim: for acts on request.
func ReadState(ctx context.Context, db pg.DB, ref job.Ref) (*State, error) {
	rows, err := pg.Structs[State](ctx, db,
		stateColumns+`WHERE d.job = @job AND d.number = @number ORDER BY d.id DESC LIMIT 1`,
		pgx.NamedArgs{"job": string(ref.Job), "number": int(ref.Number)})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", ref, err)
	}
	if len(rows) == 0 {
		return nil, unknownVersion(ref)
	}
	return rows[0].decoded()
}

func (st *State) decoded() (*State, error) {
	if err := json.Unmarshal([]byte(st.SpecJSON), &st.Spec); err != nil {
		return nil, fmt.Errorf("decode spec of %s: %w", st.Ref(), err)
	}
	if err := json.Unmarshal([]byte(st.LayoutJSON), &st.Layout); err != nil {
		return nil, fmt.Errorf("decode layout of %s: %w", st.Ref(), err)
	}
	return st, nil
}

// RollbackCommand is the command that makes readers go back from a live version.
func (st *State) RollbackCommand() string {
	if st.Previous == nil {
		return "kappactl rollback " + st.Job
	}
	return job.RollbackCommand(job.Name(st.Job), job.Number(*st.Previous))
}
