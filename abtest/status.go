package abtest

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/abtest/policy"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// Status is the newest experiment of a job.
type Status struct {
	Job        job.Name    `json:"job"`
	Run        int         `json:"run"`
	State      State       `json:"state"`
	Reason     string      `json:"reason"`
	ReasonCode reason.Code `json:"reason_code"`
	Assign     job.Assign  `json:"assign"`
	Coverage   float64     `json:"coverage"`
	Epoch      int         `json:"epoch"` // how many weights it has had
	StartedAt  time.Time   `json:"started_at"`
	StartedBy  string      `json:"started_by"`
	EndedAt    *time.Time  `json:"ended_at"`
	Arms       []Arm       `json:"arms"`
	// SampleRatio compares how many subjects were recorded in each arm with its weight.
	SampleRatio policy.Mismatch `json:"sample_ratio"`
	// Comparison is nil for a run without rewards, guardrails and steps.
	Comparison *Comparison `json:"comparison"`
}

// Arm is a version of an experiment.
type Arm struct {
	Version  string      `json:"version"`
	Control  bool        `json:"control"`
	Weight   float64     `json:"weight"`
	Phase    job.Phase   `json:"phase"`
	Verdict  job.Verdict `json:"verdict"`
	Subjects int64       `json:"subjects"` // recorded in it
}

// Decision is something that was decided in a run.
type Decision struct {
	Job         job.Name    `json:"job"`
	Run         int         `json:"run"`
	Number      int         `json:"number"`
	Epoch       int         `json:"epoch"`
	Verdict     Verdict     `json:"verdict"`
	Weights     []Weight    `json:"weights"` // from then on
	Message     string      `json:"message"`
	MessageCode reason.Code `json:"message_code"`
	By          string      `json:"by"`
	At          time.Time   `json:"at"`
}

// Weight is the share of an arm.
type Weight struct {
	Version string  `json:"version"`
	Weight  float64 `json:"weight"`
}

// Status reads the newest experiment of a job. A job that has had none is a refusal.
func (Store) Status(ctx context.Context, pool *pg.Pool, name job.Name) (out Status, err error) {
	err = pool.Snapshot(ctx, func(tx *pg.Tx) error {
		out, err = readStatus(ctx, tx, name)
		return err
	})
	return out, err
}

func readStatus(ctx context.Context, tx *pg.Tx, name job.Name) (Status, error) {
	if _, err := ledger.ReadJob(ctx, tx, name); err != nil {
		return Status{}, err
	}
	r, err := newest(ctx, tx, name)
	if err != nil {
		return Status{}, err
	}
	if r == nil {
		return Status{}, ledger.RefuseFor(job.ExitConflict, "kappactl ab start "+string(name), reason.ABNone(name))
	}
	out := Status{
		Job: name, Run: r.Run, State: r.State, Reason: r.Reason.Text(), ReasonCode: r.Reason.Code, Assign: r.Assign,
		Coverage: float64(r.Coverage) / policy.Million, Epoch: r.Epoch, StartedAt: r.StartedAt.UTC(), StartedBy: r.StartedBy,
	}
	if r.EndedAt != nil {
		at := r.EndedAt.UTC()
		out.EndedAt = &at
	}
	if out.Arms, err = readArms(ctx, tx, r); err != nil {
		return Status{}, err
	}
	epochs, err := readEpochs(ctx, tx, r)
	if err != nil {
		return Status{}, err
	}
	for _, e := range epochs {
		for i, n := range e.Subjects {
			out.Arms[i].Subjects += n
		}
	}
	out.SampleRatio = policy.SampleRatio(epochs)
	out.Comparison, err = compared(ctx, tx, r)
	return out, err
}

func readArms(ctx context.Context, tx *pg.Tx, r *row) ([]Arm, error) {
	type state struct {
		Version string
		Phase   job.Phase
		Verdict job.Verdict
	}
	found, err := pg.Structs[state](ctx, tx, `SELECT 'v' || number AS version, phase, verdict FROM kappactl.version
		WHERE job = @job AND 'v' || number = ANY (@arms)`, pgx.NamedArgs{"job": r.Job, "arms": r.Arms})
	if err != nil {
		return nil, fmt.Errorf("read the arms of %s: %w", r.Job, err)
	}
	out := make([]Arm, len(r.Arms))
	for i, version := range r.Arms {
		out[i] = Arm{Version: version, Control: i == 0, Weight: float64(r.Weights[i]) / policy.Million}
		for _, s := range found {
			if s.Version == version {
				out[i].Phase, out[i].Verdict = s.Phase, s.Verdict
			}
		}
	}
	return out, nil
}

// readEpochs counts the recorded subjects by epoch and arm.
func readEpochs(ctx context.Context, tx *pg.Tx, r *row) ([]policy.Epoch, error) {
	type count struct {
		Epoch    int
		Weights  []int
		Arm      string
		Subjects int64
	}
	found, err := pg.Structs[count](ctx, tx, `SELECT a.epoch, d.weights, a.arm, a.subjects
		FROM (SELECT epoch, arm, count(*) AS subjects FROM kappactl.assignment WHERE job = @job AND run = @run GROUP BY epoch, arm) a
		JOIN LATERAL (SELECT weights FROM kappactl.decision d WHERE d.job = @job AND d.run = @run AND d.epoch = a.epoch ORDER BY number LIMIT 1) d ON true
		ORDER BY a.epoch`, pgx.NamedArgs{"job": r.Job, "run": r.Run})
	if err != nil {
		return nil, fmt.Errorf("read the subjects of %s: %w", r.Job, err)
	}
	var out []policy.Epoch
	for i, c := range found {
		if i == 0 || found[i-1].Epoch != c.Epoch {
			out = append(out, policy.Epoch{Weights: policy.Shares(c.Weights), Subjects: make([]int64, len(r.Arms))})
		}
		for arm, version := range r.Arms {
			if version == c.Arm {
				out[len(out)-1].Subjects[arm] = c.Subjects
			}
		}
	}
	return out, nil
}

// Decisions reads what was decided in the experiments of a job, newest first.
func (Store) Decisions(ctx context.Context, db pg.DB, name job.Name) ([]Decision, error) {
	if _, err := ledger.ReadJob(ctx, db, name); err != nil {
		return nil, err
	}
	type past struct {
		Run, Number, Epoch int
		Arms               []string
		Weights            []int
		Verdict            Verdict
		Reason             reason.Reason
		By                 string
		At                 time.Time
	}
	found, err := pg.Structs[past](ctx, db, `SELECT d.run, d.number, d.epoch, e.arms, d.weights, d.verdict, d.reason, d.by, d.at
		FROM kappactl.decision d JOIN kappactl.experiment e USING (job, run) WHERE d.job = @job ORDER BY d.run DESC, d.number DESC`,
		pgx.NamedArgs{"job": string(name)})
	if err != nil {
		return nil, fmt.Errorf("read the decisions about %s: %w", name, err)
	}
	out := make([]Decision, len(found))
	for i, d := range found {
		out[i] = Decision{
			Job: name, Run: d.Run, Number: d.Number, Epoch: d.Epoch, Verdict: d.Verdict, Message: d.Reason.Text(),
			MessageCode: d.Reason.Code,
			By:          d.By, At: d.At.UTC(),
		}
		for arm, w := range d.Weights {
			out[i].Weights = append(out[i].Weights, Weight{Version: d.Arms[arm], Weight: float64(w) / policy.Million})
		}
	}
	return out, nil
}

// As makes the statements that follow in the transaction those of a subject, and returns the version that it reads;
// empty when no experiment of the job is running. It records nothing.
func (Store) As(ctx context.Context, tx *pg.Tx, name job.Name, subject string) (arm string, err error) {
	args := pgx.NamedArgs{"job": string(name), "subject": subject}
	if _, err := tx.Exec(ctx, `SELECT set_config('kappactl' || '.subject', @subject, true)`, args); err != nil {
		return "", fmt.Errorf("set the subject: %w", err)
	}
	err = tx.QueryRow(ctx, `SELECT coalesce((SELECT kappactl.pick(t.job, t.run, @subject, t.arms[1], t.arms) FROM kappactl.route t
		WHERE t.job = @job), '')`, args).Scan(&arm)
	return arm, ledger.Wrap(err, "read the arm of a subject of %s", name)
}
