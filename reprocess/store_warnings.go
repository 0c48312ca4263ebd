package reprocess

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// What status warns of: a transaction that has been open for oldTransaction, and a table with manyDead dead rows that has
// more of them than live ones.
const (
	oldTransaction = 5 * time.Minute
	manyDead       = 10_000
)

// warnings are what swells the tables of a job and holds up its flips: old transactions, and the dead rows they keep.
func (s *Store) warnings(ctx context.Context, db pg.DB, j jobRow, versions []versionRow) ([]string, error) {
	old, err := oldTransactions(ctx, db, s.old)
	if err != nil {
		return nil, err
	}
	out := []string{}
	for _, b := range old {
		out = append(out, fmt.Sprintf("%s: rows that agents replaced since then cannot be removed, and a flip may wait for it", b))
	}
	tables := []string{}
	for _, v := range versions {
		if v.EndedAt == nil {
			tables = append(tables, job.Ref{Job: job.Name(j.Name), Number: job.Number(v.Number)}.Table())
		}
	}
	dead, err := deadRows(ctx, db, j.ViewSchema, tables, s.dead)
	if err != nil {
		return nil, err
	}
	for _, t := range dead {
		out = append(out, fmt.Sprintf("table %s.%s has %s dead rows and %s live ones: autovacuum is off, or an old transaction keeps it from them; "+
			"once that has ended: VACUUM %[1]s.%[2]s", t.Schema, t.Name, grouped(t.Dead), grouped(t.Live)))
	}
	return out, nil
}

// oldTransactions are the clients of this database whose transaction has kept rows from being removed for at least age, as
// far as it may be seen when transactions began.
func oldTransactions(ctx context.Context, db pg.DB, age time.Duration) ([]Blocker, error) {
	found, err := collect[Blocker](ctx, db, `SELECT `+blockerColumns+` FROM pg_stat_activity a
		WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()
		  AND (a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL)
		  AND a.xact_start < clock_timestamp() - @age::interval
		ORDER BY a.xact_start`, pgx.NamedArgs{"age": pg.Interval(age)})
	return found, wrap(err, "look for old transactions")
}

// deadTable is a table with more dead rows than live ones, by the statistics of the server.
type deadTable struct {
	Schema, Name string
	Dead, Live   int64
}

func deadRows(ctx context.Context, db pg.DB, schema string, tables []string, many int64) ([]deadTable, error) {
	found, err := collect[deadTable](ctx, db, `SELECT quote_ident(schemaname) AS schema, quote_ident(relname) AS name, n_dead_tup AS dead, n_live_tup AS live
		FROM pg_stat_user_tables WHERE n_dead_tup >= @many AND n_dead_tup > n_live_tup
		  AND (schemaname = @schema AND relname = ANY (@tables::text[]) OR relid = to_regclass('kappactl.position')) ORDER BY 1, 2`,
		pgx.NamedArgs{"schema": schema, "tables": tables, "many": many})
	return found, wrap(err, "read the statistics of tables")
}
