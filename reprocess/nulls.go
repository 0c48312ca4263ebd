package reprocess

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// eventWarning notes what a person should look at before the flip, and what does not stop it.
const eventWarning = "warning"

// warnOfNulls notes the columns that hold values in live and are NULL in every row of the candidate: a field that was
// renamed in the records would make a green deploy of an empty column.
func (c *Controller) warnOfNulls(ctx context.Context, st *state) error {
	live := st.liveRef()
	if live == nil {
		return nil
	}
	_, layout, err := specOf(ctx, c.Pool, *live)
	if err != nil {
		return err
	}
	var empty []string
	err = c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT set_config('statement_timeout', '60s', true)`); err != nil {
			return err
		}
		for _, column := range sharedColumns(layout, st.layout) {
			lost, err := lostColumn(ctx, tx, column, c.Views.Select(*live, st.schema(), layout), c.Views.Select(st.ref(), st.schema(), st.layout))
			if err != nil {
				return err
			}
			if lost {
				empty = append(empty, column)
			}
		}
		return nil
	})
	if pg.Code(err) == "57014" { // large tables: a warning is not worth more time
		c.log(st).Info("columns are not compared with live: it takes too long")
		return nil
	}
	if err != nil || len(empty) == 0 {
		return wrap(err, "compare the columns of %s with live", st.ref())
	}
	text := fmt.Sprintf("NULL in every row, while %s, which is live, has values there: %s; was a field renamed?", live.Number, strings.Join(empty, ", "))
	c.log(st).Warn(text)
	return addEvent(ctx, c.Pool, st.entry(eventWarning, "%s", text))
}

// sharedColumns are the query's own columns that both versions have.
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

// lostColumn looks for one value in each; only a column without any is read whole.
func lostColumn(ctx context.Context, tx *pg.Tx, column, live, candidate string) (lost bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute+slack)
	defer cancel()
	some := func(rows string) string {
		return fmt.Sprintf("EXISTS (SELECT FROM (%s\n) AS q WHERE q.%s IS NOT NULL)", rows, pg.Ident(column))
	}
	err = tx.Raw().QueryRow(ctx, fmt.Sprintf("SELECT CASE WHEN %s OR NOT EXISTS (SELECT FROM (%s\n) AS q) THEN false ELSE %s END",
		some(candidate), candidate, some(live))).Scan(&lost)
	return lost, err
}

// lastWarning is what was noted of a candidate, to be said beside its state; empty when nothing was.
func lastWarning(ctx context.Context, db pg.DB, st *state) (string, error) {
	var text string
	err := db.QueryRow(ctx, `SELECT coalesce((SELECT '; warning: ' || message FROM kappactl.event
		WHERE deployment = @id AND kind = 'warning' ORDER BY id DESC LIMIT 1), '')`, pgx.NamedArgs{"id": st.ID}).Scan(&text)
	return text, wrap(err, "read the warnings of deployment %d", st.ID)
}
