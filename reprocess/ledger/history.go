package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
)

// PastEvent is something that happened to a job. Its JSON is documented and only ever grows.
type PastEvent struct {
	ID          int64           `json:"id"`
	At          time.Time       `json:"at"`
	Job         job.Name        `json:"job"`
	Version     *string         `json:"version"`
	Deployment  *int64          `json:"deployment"`
	Kind        EventKind       `json:"kind"`
	Message     string          `json:"message"`
	MessageCode reason.Code     `json:"message_code"`
	Detail      json.RawMessage `json:"detail"`
	By          string          `json:"by"`      // as the client named itself
	DBRole      string          `json:"db_role"` // PostgreSQL's session_user of who asked
	Reason      reason.Reason   `json:"-"`       // that Message is the text of
}

type eventRow struct {
	ID         int64
	At         time.Time
	Job        string
	Number     *int
	Deployment *int64
	Kind       EventKind
	Message    reason.Reason
	Detail     string
	By         string
	Role       string
}

// History is the newest events of a job, or of one of its versions when number is not nil, oldest first. A job that was
// dropped still has its history; ErrNotFound when the job or the version has none.
func (s *Store) History(ctx context.Context, name job.Name, number *job.Number, limit int) ([]PastEvent, error) {
	var n *int
	if number != nil {
		v := int(*number)
		n = &v
	}
	rows, err := pg.Structs[eventRow](ctx, s.pool, `SELECT id, at, job, number, deployment, kind, message, detail::text AS detail, by, session_role AS role FROM (
			SELECT * FROM kappactl.event WHERE (job = @job OR @job = '') AND (@number::integer IS NULL OR number = @number) ORDER BY id DESC LIMIT @limit) newest
		ORDER BY id`, pgx.NamedArgs{"job": string(name), "number": n, "limit": limit})
	if err != nil {
		return nil, fmt.Errorf("read the history of %s: %w", name, err)
	}
	if len(rows) == 0 && number != nil {
		if _, err := s.History(ctx, name, nil, 1); err != nil {
			return nil, err
		}
		return nil, unknownVersion(job.Ref{Job: name, Number: *number})
	}
	if len(rows) == 0 && name != "" {
		return nil, UnknownJob(ctx, s.pool, name)
	}
	return pastEvents(rows), nil
}

// Keys are the key columns of a version that its view shows, in the order of its table's index: time keys first.
func (s *Store) Keys(ctx context.Context, ref job.Ref) ([]string, error) {
	_, layout, err := ReadSpec(ctx, s.pool, ref)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, k := range layout.Keys {
		if slices.ContainsFunc(layout.View, func(v job.ViewColumn) bool { return v.Name == k.Name }) {
			out = append(out, k.Name)
		}
	}
	return out, nil
}

// Spec is the job file of a version.
func (s *Store) Spec(ctx context.Context, ref job.Ref) (*job.Spec, error) {
	if _, err := ReadVersion(ctx, s.pool, ref); err != nil {
		return nil, err
	}
	spec, _, err := ReadSpec(ctx, s.pool, ref)
	return spec, err
}

// File is the text of the job file that a version was staged from.
func (s *Store) File(ctx context.Context, ref job.Ref) (string, error) {
	var text string
	err := s.pool.QueryRow(ctx,
		`SELECT coalesce(max(file), '') FROM kappactl.version WHERE job = @job AND number = @number`,
		pgx.NamedArgs{"job": string(ref.Job), "number": int(ref.Number)}).Scan(&text)
	return text, Wrap(err, "read the job file of %s", ref)
}
