package ledger

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
)

// Pin keeps a version from being retired, by a person or by itself, until it is unpinned. It says whether that changes
// anything. A version that has ended, or is being retired, is a *job.Refusal.
func (s *Store) Pin(ctx context.Context, ref job.Ref, pinned bool, by string) (changed bool, err error) {
	kind, message := EventUnpin, reason.Unpinned(ref)
	if pinned {
		kind, message = EventPin, reason.Pinned(ref)
	}
	err = s.pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if _, err := LockJob(ctx, tx, ref.Job); err != nil { // as retire does, so that one of the two comes first
			return err
		}
		v, err := ReadVersion(ctx, tx, ref)
		if err != nil {
			return err
		}
		if v.EndedAt != nil || v.Phase == job.Retiring {
			return RefuseFor(job.ExitConflict, "kappactl status "+string(ref.Job), reason.NothingToKeep(ref, v.Phase))
		}
		tag, err := tx.Exec(ctx, `UPDATE kappactl.version SET pinned_at = CASE WHEN @pinned THEN clock_timestamp() END
			WHERE job = @job AND number = @number AND (pinned_at IS NOT NULL) <> @pinned`,
			pgx.NamedArgs{"job": string(ref.Job), "number": int(ref.Number), "pinned": pinned})
		if err != nil {
			return err
		}
		if changed = tag.RowsAffected() > 0; !changed {
			return nil
		}
		return AddEvent(ctx, tx, Entry{Job: string(ref.Job), Number: int(ref.Number), Kind: kind, Message: message, By: by})
	})
	if err != nil {
		return false, fmt.Errorf("%s %s: %w", kind, ref, err)
	}
	return changed, nil
}
