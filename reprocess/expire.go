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

// expireEvery is how often expired rows are deleted. Readers do not see them in between.
const expireEvery = time.Minute

// expire deletes the rows that serve.keep no longer keeps. What goes wrong is said and tried again.
func (w *watch) expire(ctx context.Context, st *state) error {
	now := w.c.Now()
	if w.c.Expiry == nil || st.layout.Keep == nil || st.layout.Keep.For <= 0 || st.PausedAt != nil || now.Sub(w.expired) < expireEvery {
		return nil
	}
	w.expired = now
	var deleted int64
	err := w.during(ctx, st, func(ctx context.Context) (err error) {
		deleted, err = w.c.Expiry.Expire(ctx, w.c.Pool, st.ref(), st.schema(), st.layout)
		return err
	})
	switch {
	case ctx.Err() != nil || pg.Unreachable(err):
		return err
	case err != nil:
		w.c.log(st).Warn("expired rows are not deleted", "reason", err)
	case deleted > 0:
		w.c.log(st).Info("expired rows are deleted", "rows", deleted)
	}
	return nil
}

// sameKeep is the keep of a compiled layout with what the version's own remembers of rows that are gone.
func sameKeep(stored, compiled *job.Keep) *job.Keep {
	switch {
	case stored == nil || stored.From == nil:
		return compiled
	case compiled == nil && stored.For > 0:
		return nil
	case compiled == nil:
		return stored
	}
	k := *compiled
	k.From = stored.From
	return &k
}

// keepFrom notes in the wish before when the version's rows are gone, when the wish keeps more than they were kept. The
// version's row stays locked, so that none is deleted meanwhile.
func (w *wish) keepFrom(ctx context.Context, tx *pg.Tx, ref job.Ref) error {
	var layout string
	var before *time.Time
	err := tx.QueryRow(ctx, `SELECT layout::text, expired_before FROM kappactl.version WHERE job = @job AND number = @number FOR UPDATE`,
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
	k := job.Keep{Column: was.Keep.Column, Type: was.Keep.Type, From: before}
	if is.Keep != nil {
		k.For = is.Keep.For
	}
	is.Keep = &k
	w.Layout, err = json.Marshal(is)
	return wrap(err, "encode layout of %s", ref)
}
