package checks

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgerrcode"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// nullsTimeout bounds the search for columns without values.
const nullsTimeout = time.Minute

// ReadTimeout is how long a version's view may be read before it is promoted, to find out whether readers get an error.
const ReadTimeout = time.Minute

// EmptyColumns returns the columns that have values in the live version and are NULL in every row of the candidate. A
// field that was renamed in the records causes this, and no check may notice. known is false if the tables are too
// large to search within nullsTimeout.
func (r Runner) EmptyColumns(ctx context.Context, live, candidate job.Version) (empty []string, known bool, err error) {
	was := r.Views.Select(live)
	is := r.Views.Select(candidate)
	err = r.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		limit := fmt.Sprintf("SET LOCAL statement_timeout = %d", nullsTimeout.Milliseconds())
		if _, err := tx.Exec(ctx, limit); err != nil {
			return err
		}
		for _, column := range sharedColumns(live.Layout, candidate.Layout) {
			lost, err := lostColumn(ctx, tx, column, was, is)
			if err != nil {
				return err
			}
			if lost {
				empty = append(empty, column)
			}
		}
		return nil
	})
	if pg.Code(err) == pgerrcode.QueryCanceled {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("compare the columns of %s with live: %w", candidate.Ref, err)
	}
	return empty, true, nil
}

// sharedColumns returns the query's own columns that both versions have.
func sharedColumns(live, candidate job.Layout) []string {
	have := map[string]bool{}
	for _, v := range live.View {
		have[v.Name] = !v.Computed
	}
	var out []string
	for _, v := range candidate.View {
		if have[v.Name] && !v.Computed {
			out = append(out, v.Name)
		}
	}
	return out
}

// lostColumn searches each version for one value. Only a column without values is read completely.
func lostColumn(ctx context.Context, tx *pg.Tx, column, live, candidate string) (lost bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, nullsTimeout+slack)
	defer cancel()
	some := func(rows string) string {
		return fmt.Sprintf("EXISTS (SELECT FROM (%s\n) AS q WHERE q.%s IS NOT NULL)", rows, pg.Ident(column))
	}
	query := fmt.Sprintf("SELECT CASE WHEN %s OR NOT EXISTS (SELECT FROM (%s\n) AS q) THEN false ELSE %s END",
		some(candidate), candidate, some(live))
	err = tx.Raw().QueryRow(ctx, query).Scan(&lost)
	return lost, err
}
