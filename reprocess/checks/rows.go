package checks

import (
	"context"
	"fmt"

	"github.com/jackc/pgerrcode"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// fewShare: a candidate with fewer than 1/fewShare of the live version's rows is not promoted automatically.
const fewShare = 10

// FewRows reports whether the candidate's view has no rows, or less than a tenth of live's, and returns the number of
// the candidate's rows. It reads at most ten times as many rows of live. If the tables are too large for nullsTimeout
// it returns false.
func (r Runner) FewRows(ctx context.Context, live, candidate job.Version) (rows int64, few bool, err error) {
	err = r.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		ctx, cancel := context.WithTimeout(ctx, nullsTimeout+slack)
		defer cancel()
		if _, err := tx.Exec(ctx, fmt.Sprintf("SET LOCAL statement_timeout = %d", nullsTimeout.Milliseconds())); err != nil {
			return err
		}
		if err := tx.Raw().QueryRow(ctx, fmt.Sprintf("SELECT count(*) FROM (%s\n) AS q",
			r.Views.Select(candidate))).Scan(&rows); err != nil {
			return err
		}
		more := fmt.Sprintf("SELECT count(*) > %d FROM (SELECT FROM (%s\n) AS q LIMIT %d) AS l", fewShare*rows,
			r.Views.Select(live), fewShare*rows+1)
		return tx.Raw().QueryRow(ctx, more).Scan(&few)
	})
	if pg.Code(err) == pgerrcode.QueryCanceled {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("count the rows of %s beside live: %w", candidate.Ref, err)
	}
	return rows, few, nil
}
