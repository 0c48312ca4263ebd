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

// BeforePromote is what a person should know before readers see a version: which rollback window ends with it, and which
// clients will have to prepare their statements anew. Empty when nothing but the version changes.
func (s *Store) BeforePromote(ctx context.Context, views Views, ref job.Ref) ([]string, error) {
	st, err := readState(ctx, s.pool, ref)
	if err != nil {
		return nil, err
	}
	var out []string
	open, err := observedNow(ctx, s.pool, st)
	if err != nil {
		return nil, err
	}
	for _, w := range open {
		out = append(out, w.words(st))
	}
	if j := st.jobRow(); len(j.contract()) > 0 {
		var r *job.Refusal
		if err := views.Check(j.contract(), st.layout, false); errors.As(err, &r) {
			out = append(out, r.Cause)
		} else if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// window is a rollback window that is open.
type window struct {
	ID           int64
	Number       int
	Previous     *int
	ObserveUntil *time.Time
}

func (w window) words(st *state) string {
	text := fmt.Sprintf("this settles the roll-out of %s, whose rollback window is open", job.Number(w.Number))
	if w.ObserveUntil != nil {
		text += " until " + w.ObserveUntil.UTC().Format("2006-01-02T15:04:05Z")
	}
	if w.Previous != nil && *w.Previous != st.Number {
		text += fmt.Sprintf(": a rollback then goes to %s and no longer to %s", job.Number(w.Number), job.Number(*w.Previous))
	}
	return text
}

// observedNow are the rollback windows that a flip to the version would end.
func observedNow(ctx context.Context, db pg.DB, st *state) ([]window, error) {
	found, err := collect[window](ctx, db, `SELECT id, number, previous, observe_until FROM kappactl.deployment
		WHERE job = @job AND state = 'observing' AND number <> @number ORDER BY id`, pgx.NamedArgs{"job": st.Job, "number": st.Number})
	return found, wrap(err, "read the rollback windows of %s", st.Job)
}
