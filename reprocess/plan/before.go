package plan

import (
	"context"
	"errors"
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// BeforePromote holds the facts that a person needs before readers see a version: which rollback window ends with it,
// and which clients will have to prepare their statements again. Empty when nothing but the version changes.
func (s *Store) BeforePromote(ctx context.Context, serving Serving, ref job.Ref) ([]string, error) {
	st, err := ledger.ReadState(ctx, s.pool, ref)
	if err != nil {
		return nil, err
	}
	var out []string
	open, err := ledger.OpenWindows(ctx, s.pool, st)
	if err != nil {
		return nil, err
	}
	for _, w := range open {
		out = append(out, windowText(w, st))
	}
	if j := st.JobRow(); len(j.Contract()) > 0 {
		var r *job.Refusal
		if err := serving.Check(j.Contract(), st.Layout, false); errors.As(err, &r) {
			out = append(out, r.Cause)
		} else if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func windowText(w ledger.Window, st *ledger.State) string {
	text := fmt.Sprintf("this settles the roll-out of %s, whose rollback window is open", job.Number(w.Number))
	if w.ObserveUntil != nil {
		text += " until " + w.ObserveUntil.UTC().Format("2006-01-02T15:04:05Z")
	}
	if w.Previous != nil && *w.Previous != st.Number {
		text += fmt.Sprintf(": a rollback then goes to %s and no longer to %s", job.Number(w.Number), job.Number(*w.Previous))
	}
	return text
}
