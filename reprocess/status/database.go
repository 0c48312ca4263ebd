package status

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// warnings returns causes of table bloat and of delayed flips: old transactions, and the dead rows that they keep.
func (s *Store) warnings(
	ctx context.Context, db pg.DB, j ledger.JobRow, versions []versionRow,
) ([]reason.Reason, error) {
	old, err := oldTransactions(ctx, db, s.config.OldTransaction)
	if err != nil {
		return nil, err
	}
	out := []reason.Reason{}
	for _, b := range old {
		out = append(out, reason.OldTransaction(b.PID, b.String()))
	}
	tables := []string{}
	for _, v := range versions {
		if v.EndedAt == nil {
			tables = append(tables, job.Ref{Job: job.Name(j.Name), Number: job.Number(v.Number)}.Table())
		}
	}
	dead, err := deadRows(ctx, db, j.ViewSchema, tables, s.config.DeadRows)
	if err != nil {
		return nil, err
	}
	for _, t := range dead {
		out = append(out, reason.DeadRows(t.Schema+"."+t.Name, t.Dead, t.Live))
	}
	held, err := batchTroubles(ctx, db, job.Name(j.Name))
	return append(out, held...), err
}

// batchTroubles returns what keeps batch runs of a job, or the removal of old generations, from going on.
func batchTroubles(ctx context.Context, db pg.DB, name job.Name) ([]reason.Reason, error) {
	type row struct {
		Number     job.Number
		Generation *int
		Trouble    reason.Reason
	}
	found, err := pg.Structs[row](ctx, db, `SELECT r.number, g.generation, r.trouble
		  FROM kappactl.request r LEFT JOIN kappactl.generation g ON g.request = r.id
		 WHERE r.job = @job AND r.verb = @verb AND r.answered_at IS NULL AND r.trouble <> '{}'
		UNION ALL
		SELECT number, generation, trouble FROM kappactl.generation
		 WHERE job = @job AND dropped_at IS NULL AND state <> 'building' AND trouble <> '{}'
		ORDER BY 1, 2`, pgx.NamedArgs{"job": string(name), "verb": string(ledger.BatchRun)})
	if err != nil {
		return nil, ledger.Wrap(err, "read what keeps batch runs of %s from going on", name)
	}
	out := make([]reason.Reason, len(found))
	for i, r := range found {
		out[i] = reason.BatchHeld(job.Ref{Job: name, Number: r.Number}, r.Generation, r.Trouble)
	}
	return out, nil
}

// oldTransactions returns the clients of this database whose transaction has prevented the removal of rows for at least
// age, as far as the start of transactions is visible to the role.
func oldTransactions(ctx context.Context, db pg.DB, age time.Duration) ([]ledger.Blocker, error) {
	found, err := pg.Structs[ledger.Blocker](ctx, db, `SELECT `+ledger.BlockerColumns+` FROM pg_stat_activity a
		WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()
		  AND (a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL)
		  AND a.xact_start < clock_timestamp() - @age::interval
		ORDER BY a.xact_start`, pgx.NamedArgs{"age": pg.Interval(age)})
	return found, ledger.Wrap(err, "look for old transactions")
}

// deadTable is a table with more dead rows than live ones, according to the server's statistics.
type deadTable struct {
	Schema, Name string
	Dead, Live   int64
}

func deadRows(ctx context.Context, db pg.DB, schema string, tables []string, many int64) ([]deadTable, error) {
	found, err := pg.Structs[deadTable](ctx, db,
		`SELECT quote_ident(schemaname) AS schema, quote_ident(relname) AS name, n_dead_tup AS dead, n_live_tup AS live
		FROM pg_stat_user_tables WHERE n_dead_tup >= @many AND n_dead_tup > n_live_tup
		  AND (schemaname = @schema AND EXISTS (SELECT FROM unnest(@tables::text[]) AS t
			WHERE relname = t OR relname ~ ('^' || t || '_g[0-9]+$')) OR relid = to_regclass('kappactl.position'))
		ORDER BY 1, 2`,
		pgx.NamedArgs{"schema": schema, "tables": tables, "many": many})
	return found, ledger.Wrap(err, "read the statistics of tables")
}
