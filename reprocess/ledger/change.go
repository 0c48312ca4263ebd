package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// ViewChanged is listed among the changes for a view that this release writes otherwise, with the same job file.
const ViewChanged = "the view's definition"

// keepFrom notes in the wish before when the version's rows are gone, when the wish keeps more than they were kept. The
// version's row stays locked, so that none is deleted meanwhile.
func (w *PendingChange) keepFrom(ctx context.Context, tx *pg.Tx, ref job.Ref) error {
	var layout string
	var before *time.Time
	err := tx.QueryRow(ctx, `SELECT layout::text, expired_before FROM kappactl.version WHERE job = @job AND number = @number FOR NO KEY UPDATE`,
		pgx.NamedArgs{"job": string(ref.Job), "number": int(ref.Number)}).Scan(&layout, &before)
	if err != nil {
		return fmt.Errorf("read what is kept of %s: %w", ref, err)
	}
	var was, is job.Layout
	if err := json.Unmarshal([]byte(layout), &was); err != nil {
		return fmt.Errorf("decode layout of %s: %w", ref, err)
	}
	if err := json.Unmarshal(w.Layout, &is); err != nil {
		return fmt.Errorf("decode layout of %s: %w", ref, err)
	}
	if was.Keep == nil || before == nil || (is.Keep != nil && is.Keep.For > 0 && is.Keep.For <= was.Keep.For) {
		return nil
	}
	k := job.Keep{Column: was.Keep.Column, Type: was.Keep.Type, ByRecord: was.Keep.ByRecord, From: before}
	if is.Keep != nil {
		k.For = is.Keep.For
	}
	is.Keep = &k
	w.Layout, err = json.Marshal(is)
	return Wrap(err, "encode layout of %s", ref)
}

// PendingChange replaces the spec of the live version when its own hash is deployed, in the transaction that writes the
// view.
type PendingChange struct {
	Spec    json.RawMessage `json:"spec"`
	Layout  json.RawMessage `json:"layout"`
	File    string          `json:"file"`
	Changed []string        `json:"changed"`
}

// Write stores the spec on the version and moves the end of a rollback window with keep_old.
func (w *PendingChange) Write(ctx context.Context, tx *pg.Tx, ref job.Ref) error {
	if err := w.keepFrom(ctx, tx, ref); err != nil {
		return err
	}
	args := pgx.NamedArgs{
		"job": string(ref.Job), "number": int(ref.Number), "spec": string(w.Spec), "layout": string(w.Layout), "file": w.File,
	}
	var was, is int64
	err := tx.QueryRow(ctx, `WITH old AS (
			SELECT coalesce((spec -> 'keep_old')::bigint, 0) AS keep FROM kappactl.version WHERE job = @job AND number = @number FOR NO KEY UPDATE)
		UPDATE kappactl.version v SET spec = @spec::jsonb, layout = @layout::jsonb, file = @file
		FROM old WHERE v.job = @job AND v.number = @number
		RETURNING old.keep, coalesce((v.spec -> 'keep_old')::bigint, 0)`, args).Scan(&was, &is)
	if err != nil {
		return fmt.Errorf("write the spec of %s: %w", ref, err)
	}
	if was == is {
		return nil
	}
	_, err = tx.Exec(ctx, `WITH d AS (
			UPDATE kappactl.deployment SET observe_until = observe_until + @more::interval
			WHERE job = @job AND number = @number AND state = 'observing' RETURNING previous)
		UPDATE kappactl.version v SET standby_until = standby_until + @more::interval
		FROM d WHERE v.job = @job AND v.number = d.previous AND v.phase = 'standby'`,
		pgx.NamedArgs{"job": string(ref.Job), "number": int(ref.Number), "more": pg.Interval(time.Duration(is - was))})
	return Wrap(err, "move the rollback window of %s", ref)
}

// SetPending notes on a deployment what its controller is to apply in place.
func SetPending(ctx context.Context, tx *pg.Tx, deployment int64, w *PendingChange) error {
	text, err := json.Marshal(Options{Apply: w})
	if err != nil {
		return fmt.Errorf("encode what is to be applied: %w", err)
	}
	_, err = tx.Exec(ctx, `UPDATE kappactl.deployment SET options = options || @apply::jsonb WHERE id = @id`,
		pgx.NamedArgs{"id": deployment, "apply": string(text)})
	return Wrap(err, "write what deployment %d applies", deployment)
}

// Pending is the state with the spec that the deployment is to put in force.
func (st *State) Pending() (*State, *PendingChange, error) {
	w := st.Options().Apply
	if w == nil {
		w = &PendingChange{
			Spec: json.RawMessage(st.SpecJSON), Layout: json.RawMessage(st.LayoutJSON),
			Changed: []string{ViewChanged},
		}
	}
	return st.WithSpec(w)
}

// WithSpec is the state with the spec and layout of a pending change.
func (st *State) WithSpec(w *PendingChange) (*State, *PendingChange, error) {
	out := *st
	out.SpecJSON, out.LayoutJSON, out.Spec, out.Layout = string(w.Spec), string(w.Layout), job.Spec{}, job.Layout{}
	decoded, err := out.decoded()
	return decoded, w, err
}

// SameOptions is ErrLost when a deployment's options were changed since the state was read.
func SameOptions(ctx context.Context, tx *pg.Tx, st *State) error {
	var now string
	err := tx.QueryRow(ctx, `SELECT options::text FROM kappactl.deployment WHERE id = @id`,
		pgx.NamedArgs{"id": st.ID}).Scan(&now)
	if err == nil && now != st.OptionsJSON {
		return ErrLost
	}
	return Wrap(err, "read the options of deployment %d", st.ID)
}

// NoteRefused notes on a deployment, whatever its state, that its change was refused.
func NoteRefused(ctx context.Context, tx *pg.Tx, id int64, a Answer) error {
	_, err := tx.Exec(ctx, `UPDATE kappactl.deployment SET exit_code = @code, message = @message, next_command = @next, promoted_at = NULL WHERE id = @id`,
		pgx.NamedArgs{"id": id, "code": int(a.Code), "message": a.Reason, "next": a.Next})
	return Wrap(err, "note what deployment %d met", id)
}
