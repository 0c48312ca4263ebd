package pg

import (
	"context"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// markClass is the first key of the advisory locks that mark transactions: "kapp".
const markClass = 0x6b617070

// mark says whose a transaction is: a shared advisory lock that ends with it. PostgreSQL ends a transaction that stands still between
// two statements (Config.Idle); one whose client stands still in the middle of a statement, as in a COPY, it waits for without end,
// whatever statement_timeout says. Only another session can end that, and by its mark it finds it: by nothing that a
// connection string can change or a pooler hides.
func mark(owner string) uint32 { return crc32.ChecksumIEEE([]byte(owner)) }

// markSQL marks the transaction of the session that runs it.
func markSQL(owner string) string {
	return fmt.Sprintf("SELECT pg_advisory_xact_lock_shared(%d, %d)", markClass, int32(mark(owner)))
}

// sqlEndStuck ends backends that wait for their client in a marked transaction, once they are known: a condition with a side effect
// is not for the planner to place. A role may end its own backends.
const sqlEndStuck = `
WITH stuck AS MATERIALIZED (
     SELECT l.pid FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
      WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND l.classid::bigint = @class::bigint AND l.objid::bigint = ANY (@marks::bigint[])
        AND (@pid::bigint = 0 OR l.pid = @pid::bigint)
        AND a.wait_event_type = 'Client' AND a.xact_start <= clock_timestamp() - @older::interval)
SELECT pid FROM stuck WHERE pg_terminate_backend(pid)`

// EndStuck ends the transactions of the given owners (Config.Mark) that began longer ago than older and wait for their client, and
// returns how many. What still runs in the database is left to come to its end.
func EndStuck(ctx context.Context, db DB, owners []string, older time.Duration) (int, error) {
	return endStuck(ctx, db, owners, 0, older)
}

func endStuck(ctx context.Context, db DB, owners []string, pid uint32, older time.Duration) (int, error) {
	marks := make([]int64, len(owners))
	for i, o := range owners {
		marks[i] = int64(mark(o))
	}
	rows, err := db.Query(ctx, sqlEndStuck, pgx.NamedArgs{
		"class": markClass, "marks": marks, "pid": int64(pid), "older": Interval(older),
	})
	if err != nil {
		return 0, fmt.Errorf("end transactions that stand still: %w", err)
	}
	ended, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	if err != nil {
		return 0, fmt.Errorf("end transactions that stand still: %w", err)
	}
	return len(ended), nil
}

// endWithin bounds how long a transaction that was given up is followed into the database.
const endWithin = 2 * time.Second

// endGivenUp ends, from another connection, a transaction of ours that ended with err because its statement was not answered: when
// the network has lost the connection, the server does not know that nobody is there any more, and would keep its locks.
func (p *Pool) endGivenUp(ctx context.Context, conn *pgconn.PgConn, err error) {
	if p.owner == "" || !conn.IsClosed() || Code(err) != "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
	defer cancel()
	_, _ = endStuck(ctx, p, []string{p.owner}, conn.PID(), 0) // when we cannot, nobody is worse off
}
