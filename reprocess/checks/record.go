package checks

import (
	"context"
	"encoding/json"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// Past is the latest answer of a check in a deployment.
type Past struct {
	Name       string
	Definition string // the check as JSON, as defined when it ran
	Outcome    Outcome
	Detail     reason.Reason
	Failures   int // consecutive
	At         time.Time
}

// Read reads the latest answers of a deployment's checks in a stage.
func Read(ctx context.Context, db pg.DB, deployment int64, stage string) ([]Past, error) {
	rows, err := ledger.ReadChecks(ctx, db, deployment, stage)
	out := make([]Past, len(rows))
	for i, r := range rows {
		out[i] = Past{r.Name, r.Definition, Outcome(r.Outcome), r.Detail, r.Failures, r.At}
	}
	return out, err
}

// Write stores the results of a run.
func (r *Run) Write(ctx context.Context, tx *pg.Tx, st *ledger.State) error {
	answers := make([]ledger.CheckAnswer, len(r.Results))
	for i, result := range r.Results {
		answers[i] = ledger.CheckAnswer{
			Check: r.Due[i], Outcome: string(result.Outcome), Detail: result.Detail, Seconds: result.Seconds,
		}
		if result.Diff != nil {
			answers[i].Diff = result.Diff
		}
	}
	return ledger.WriteChecks(ctx, tx, st, r.Stage, r.Offsets, answers)
}

// Is reports whether the answer belongs to the check's current definition.
func (p Past) Is(k job.Check) bool {
	var was job.Check
	if p.Name != k.Name || json.Unmarshal([]byte(p.Definition), &was) != nil {
		return false
	}
	a, err := json.Marshal(was)
	if err != nil {
		return false
	}
	b, err := json.Marshal(k)
	return err == nil && string(a) == string(b)
}
