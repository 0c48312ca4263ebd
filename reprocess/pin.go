package reprocess

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Pin keeps a version from being retired, by a person or by itself, until it is unpinned. It says whether that changes
// anything. A version that has ended, or is being retired, is a *job.Refusal.
func (s *Store) Pin(ctx context.Context, ref job.Ref, pinned bool, by string) (changed bool, err error) {
	verb := "unpin"
	if pinned {
		verb = "pin"
	}
	err = s.pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if _, err := lockJob(ctx, tx, ref.Job); err != nil { // as retire does, so that one of the two comes first
			return err
		}
		v, err := readVersion(ctx, tx, ref)
		if err != nil {
			return err
		}
		if v.EndedAt != nil || v.Phase == job.Retiring {
			return refuse(job.ExitConflict, "kappactl status "+string(ref.Job), "%s is %s: there is nothing to keep", ref, v.Phase)
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
		return addEvent(ctx, tx, entry{Job: string(ref.Job), Number: int(ref.Number), Kind: verb, Message: fmt.Sprintf("%s is %sned", ref, verb), By: by})
	})
	if err != nil {
		return false, fmt.Errorf("%s %s: %w", verb, ref, err)
	}
	return changed, nil
}
