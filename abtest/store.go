package abtest

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/abtest/judge"
	"github.com/kappactl/kappactl/abtest/policy"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// State is where an experiment is.
type State string

// The states of an experiment. While it is paused every reader reads the control.
const (
	Running State = "running"
	Paused  State = "paused"
	Ended   State = "ended"
)

// Verdict names the change that a decision made.
type Verdict string

// The verdicts of decisions.
const (
	Started Verdict = "start"
	Weighed Verdict = "weights"
	Stopped Verdict = "pause"
	Resumed Verdict = "resume"
	Over    Verdict = "end"
	// Those of a look, as judge.Verdict: rollback, freeze, win and wait.
)

// Store reads and writes the rows of experiments. It keeps no state.
type Store struct{}

// row is a row of kappactl.experiment, with its newest weights.
type row struct {
	ID        int64
	Job       string
	Run       int
	Arms      []string
	Assign    job.Assign
	Coverage  int
	State     State
	Reason    reason.Reason
	Settings  job.Experiment
	Progress  judge.Progress
	StartedAt time.Time
	StartedBy string
	EndedAt   *time.Time
	Weights   []int // parts per million
	Epoch     int
}

const rowColumns = `e.id, e.job, e.run, e.arms, e.assign, e.coverage, e.state, e.reason, e.settings, e.progress, e.started_at, e.started_by, e.ended_at, d.weights, d.epoch
	FROM kappactl.experiment e
	JOIN LATERAL (SELECT weights, epoch FROM kappactl.decision d WHERE d.job = e.job AND d.run = e.run ORDER BY number DESC LIMIT 1) d ON true `

// open reads the experiment of a job that has not ended, nil when there is none. A transaction that holds the job's
// row holds it, too.
func open(ctx context.Context, db pg.DB, name job.Name) (*row, error) {
	return one(ctx, db, name, rowColumns+`WHERE e.job = @job AND e.ended_at IS NULL`)
}

// newest reads the last experiment of a job, nil when there was none.
func newest(ctx context.Context, db pg.DB, name job.Name) (*row, error) {
	return one(ctx, db, name, rowColumns+`WHERE e.job = @job ORDER BY e.run DESC LIMIT 1`)
}

func one(ctx context.Context, db pg.DB, name job.Name, from string) (*row, error) {
	rows, err := pg.Structs[row](ctx, db, `SELECT `+from, pgx.NamedArgs{"job": string(name)})
	if err != nil {
		return nil, fmt.Errorf("read the experiment of %s: %w", name, err)
	}
	if len(rows) == 0 {
		return nil, nil //nolint:nilnil // no experiment is not an error
	}
	return &rows[0], nil
}

// insert writes a new run with its route.
func insert(ctx context.Context, tx *pg.Tx, r *row, why reason.Reason) error {
	args := pgx.NamedArgs{
		"job": r.Job, "arms": r.Arms, "assign": string(r.Assign), "coverage": r.Coverage, "by": r.StartedBy,
		"state": string(Running),
		"why":   why, "run": r.Run, "settings": document{r.Settings},
	}
	_, err := tx.Exec(ctx, `INSERT INTO kappactl.experiment (job, run, arms, assign, coverage, state, reason, settings, started_by)
		VALUES (@job, @run, @arms, @assign, @coverage, @state, @why, @settings, @by)`, args)
	if err == nil && r.Settings.Reward != nil {
		_, err = tx.Exec(ctx, `INSERT INTO kappactl.reward_source (job, run) VALUES (@job, @run)`, args)
	}
	if err != nil {
		return fmt.Errorf("write the experiment of %s: %w", r.Job, err)
	}
	if err := decide(ctx, tx, r, Started, why, r.StartedBy, nil); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO kappactl.route (job, run, arms, weights, coverage, sticky, epoch)
		VALUES (@job, @run, @arms, @weights, @coverage, @sticky, @epoch)`, pgx.NamedArgs{
		"job": r.Job, "run": r.Run, "arms": r.Arms, "weights": r.Weights, "coverage": r.Coverage,
		"sticky": r.Assign == job.AssignSticky, "epoch": r.Epoch,
	})
	return ledger.Wrap(err, "write the route of %s", r.Job)
}

// decide appends a decision. in is what a look has found; nil: a person decided.
func decide(ctx context.Context, tx *pg.Tx, r *row, v Verdict, why reason.Reason, by string, in *judge.Inputs) error {
	inputs := document{struct{}{}}
	if in != nil {
		inputs = document{in}
	}
	_, err := tx.Exec(ctx, `INSERT INTO kappactl.decision (job, run, number, epoch, verdict, weights, reason, by, inputs)
		SELECT @job, @run, coalesce(max(number), 0) + 1, @epoch, @verdict, @weights, @why, @by, @inputs FROM kappactl.decision WHERE job = @job AND run = @run`,
		pgx.NamedArgs{
			"job": r.Job, "run": r.Run, "epoch": r.Epoch, "verdict": string(v), "weights": r.Weights, "why": why,
			"by": by, "inputs": inputs,
		})
	return ledger.Wrap(err, "write a decision about %s", r.Job)
}

// weigh makes readers be routed by the weights of r, in the epoch of r.
func weigh(ctx context.Context, tx *pg.Tx, r *row) error {
	tag, err := tx.Exec(ctx,
		`UPDATE kappactl.route SET weights = @weights, epoch = @epoch WHERE job = @job AND run = @run AND epoch = @epoch - 1`,
		pgx.NamedArgs{"job": r.Job, "run": r.Run, "weights": r.Weights, "epoch": r.Epoch})
	if err == nil && tag.RowsAffected() != 1 {
		err = errors.New("its route is in another epoch")
	}
	return ledger.Wrap(err, "write the route of %s", r.Job)
}

// setState pauses or resumes a run.
func setState(ctx context.Context, tx *pg.Tx, r *row, to State, why reason.Reason) error {
	args := pgx.NamedArgs{"job": r.Job, "run": r.Run, "state": string(to), "why": why, "paused": to == Paused}
	if _, err := tx.Exec(ctx,
		`UPDATE kappactl.experiment SET state = @state, reason = @why WHERE job = @job AND run = @run`, args); err != nil {
		return fmt.Errorf("write the experiment of %s: %w", r.Job, err)
	}
	_, err := tx.Exec(ctx, `UPDATE kappactl.route SET paused = @paused WHERE job = @job AND run = @run`, args)
	return ledger.Wrap(err, "write the route of %s", r.Job)
}

// end ends a run: readers are no longer routed by it.
func end(ctx context.Context, tx *pg.Tx, r *row, why reason.Reason, by string) error {
	args := pgx.NamedArgs{"job": r.Job, "run": r.Run, "state": string(Ended), "why": why}
	if _, err := tx.Exec(ctx, `DELETE FROM kappactl.route WHERE job = @job`, args); err != nil {
		return fmt.Errorf("delete the route of %s: %w", r.Job, err)
	}
	_, err := tx.Exec(ctx, `UPDATE kappactl.experiment SET state = @state, reason = @why, ended_at = clock_timestamp() WHERE job = @job AND run = @run`, args)
	if err != nil {
		return fmt.Errorf("write the experiment of %s: %w", r.Job, err)
	}
	if err := decide(ctx, tx, r, Over, why, by, nil); err != nil {
		return err
	}
	return ledger.AddEvent(ctx, tx, ledger.Entry{Job: r.Job, Whole: true, Kind: ledger.EventABEnded, Message: why, By: by})
}

// Candidates are the versions that could be tested against the live one, oldest first.
func candidates(ctx context.Context, db pg.DB, name job.Name) ([]job.Number, error) {
	found, err := pg.Collect(ctx, db, pgx.RowTo[int], `SELECT number FROM kappactl.version WHERE job = @job AND phase IN ('caught_up', 'verified')
		ORDER BY number`, pgx.NamedArgs{"job": string(name)})
	out := make([]job.Number, len(found))
	for i, n := range found {
		out[i] = job.Number(n)
	}
	return out, ledger.Wrap(err, "read the versions of %s", name)
}

// Forget deletes the assignments and rewards of a subject in all runs of a job and returns how many assignments there
// were.
func (Store) Forget(ctx context.Context, pool *pg.Pool, name job.Name, subject, by string) (int64, error) {
	var rows int64
	err := pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		of := pgx.NamedArgs{"job": string(name), "subject": subject}
		parked, err := tx.Exec(ctx, `DELETE FROM kappactl.reward WHERE job = @job AND subject = @subject`, of)
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `DELETE FROM kappactl.assignment WHERE job = @job AND subject = @subject`, of)
		if err != nil {
			return err
		}
		if rows = tag.RowsAffected(); rows+parked.RowsAffected() == 0 {
			return nil
		}
		return ledger.AddEvent(ctx, tx, ledger.Entry{
			Job: string(name), Whole: true, Kind: ledger.EventABForgot,
			Message: reason.ABForgot(rows), By: by,
		})
	})
	return rows, ledger.Wrap(err, "forget a subject of %s", name)
}

// EndByFlip ends the experiment of a job in the transaction of a flip, as ledger.Experiments describes.
func (Store) EndByFlip(ctx context.Context, tx *pg.Tx, to job.Ref, back bool, by string) error {
	r, err := open(ctx, tx, to.Job)
	if err != nil || r == nil {
		return err
	}
	if !back && !r.has(to.Number) {
		return ledger.RefuseFor(job.ExitConflict, ledger.StopCommand(to.Job), reason.ABNoArm(to, r.Arms))
	}
	return end(ctx, tx, r, reason.ABEndedByFlip(to.Job, r.Run, to.Number.String()), by)
}

func (r *row) has(n job.Number) bool {
	for _, arm := range r.Arms {
		if arm == n.String() {
			return true
		}
	}
	return false
}

// texts are the arms with their weights, as people read them: v1 90%.
func (r *row) texts() []string {
	out := make([]string, len(r.Arms))
	for i, arm := range r.Arms {
		out[i] = arm + " " + reason.Percent(float64(r.Weights[i])/policy.Million)
	}
	return out
}

// document is a value that is written into a jsonb column.
type document struct{ of any }

// Value implements driver.Valuer.
func (d document) Value() (driver.Value, error) {
	text, err := json.Marshal(d.of)
	return string(text), err
}
