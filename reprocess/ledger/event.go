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

// Entry is a row of kappactl.event. Detail is marshalled when it is not nil.
type Entry struct {
	Job        string
	Number     int
	Whole      bool // about the job and not one of its versions
	Deployment int64
	Kind       EventKind
	Message    reason.Reason
	Detail     any
	By         string
	Role       string // the database role of who asked; empty: of this session
}

// AddEvent appends to the history.
func AddEvent(ctx context.Context, db pg.DB, e Entry) error {
	_, _, err := InsertEvent(ctx, db, e)
	return err
}

// InsertEvent appends to the history and returns the event's id and time.
func InsertEvent(ctx context.Context, db pg.DB, e Entry) (id int64, at time.Time, err error) {
	if !slices.Contains(EventKinds(), e.Kind) {
		return 0, at, fmt.Errorf("write event %q: the kind is not in EventKinds", e.Kind)
	}
	detail := "{}"
	if e.Detail != nil {
		b, err := json.Marshal(e.Detail)
		if err != nil {
			return 0, at, fmt.Errorf("encode event: %w", err)
		}
		detail = string(b)
	}
	column, value := "", ""
	if e.Role != "" { // the role of the commands may not write the column, and leaves it to its default
		column, value = ", session_role", ", @role"
	}
	err = db.QueryRow(ctx, `INSERT INTO kappactl.event (job, number, deployment, kind, message, detail, by`+column+`)
		VALUES (@job, CASE WHEN @whole::boolean THEN NULL ELSE @number::integer END, nullif(@deployment::bigint, 0), @kind, @message, @detail::jsonb, @by`+value+`)
		RETURNING id, at`,
		pgx.NamedArgs{
			"job": e.Job, "number": e.Number, "whole": e.Whole, "deployment": e.Deployment, "kind": string(e.Kind),
			"message": e.Message, "detail": detail, "by": e.By, "role": e.Role,
		}).Scan(&id, &at)
	if err != nil {
		return 0, at, fmt.Errorf("write event %s: %w", e.Kind, err)
	}
	return id, at, nil
}

// CountEvents says whether an event of this kind was written for the version, and how many times.
func CountEvents(ctx context.Context, db pg.DB, st *State, kind EventKind) (int, error) {
	var n int
	err := db.QueryRow(ctx, `SELECT count(*) FROM kappactl.event WHERE job = @job AND number = @number AND kind = @kind`,
		pgx.NamedArgs{"job": st.Job, "number": st.Number, "kind": string(kind)}).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("read events of %s: %w", st.Ref(), err)
	}
	return n, nil
}

// DeploymentEvents are the events of a deployment with an id above after, oldest first, at most 1,000. Ids are given
// out before transactions commit, so an event with a lower id than one that was seen may still appear: who follows asks
// again from a little below the newest.
func (s *Store) DeploymentEvents(ctx context.Context, deployment, after int64) ([]PastEvent, error) {
	rows, err := pg.Structs[eventRow](ctx, s.pool, `SELECT id, at, job, number, deployment, kind, message, detail::text AS detail, by, session_role AS role
		FROM kappactl.event WHERE deployment = @deployment AND id > @after
			AND job = (SELECT job FROM kappactl.deployment WHERE id = @deployment) ORDER BY id LIMIT 1000`,
		pgx.NamedArgs{"deployment": deployment, "after": after})
	if err != nil {
		return nil, fmt.Errorf("read the events of deployment %d: %w", deployment, err)
	}
	return pastEvents(rows), nil
}

func pastEvents(rows []eventRow) []PastEvent {
	out := make([]PastEvent, len(rows))
	for i, r := range rows {
		out[i] = PastEvent{
			ID: r.ID, At: r.At.UTC(), Job: job.Name(r.Job), Deployment: r.Deployment, Kind: r.Kind, Message: r.Message.Text(),
			MessageCode: r.Message.Code,
			Detail:      json.RawMessage(r.Detail), By: r.By, DBRole: r.Role, Reason: r.Message,
		}
		if r.Number != nil {
			v := job.Number(*r.Number).String()
			out[i].Version = &v
		}
	}
	return out
}

// AddWarning writes a warning to the history of a deployment; a zero one writes nothing.
func AddWarning(ctx context.Context, db pg.DB, st *State, warning reason.Reason) error {
	if warning.IsZero() {
		return nil
	}
	return AddEvent(ctx, db, st.Entry(EventWarning, warning))
}

// LastWarning is the last warning in the history of a deployment; zero: there is none.
func LastWarning(ctx context.Context, db pg.DB, deployment int64) (reason.Reason, error) {
	var warning reason.Reason
	err := db.QueryRow(ctx, `SELECT coalesce((`+lastWarning+`), '{}')`, pgx.NamedArgs{"id": deployment}).Scan(&warning)
	return warning, Wrap(err, "read the warnings of deployment %d", deployment)
}

// lastWarning is the message of the last warning of deployment @id, or no row.
const lastWarning = `SELECT message FROM kappactl.event WHERE deployment = @id AND kind = 'warning' ORDER BY id DESC LIMIT 1`
