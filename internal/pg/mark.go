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

// mark returns the second key of a shared advisory lock that identifies a transaction's owner and ends with it.
// PostgreSQL ends a transaction that is idle between two statements (Config.Idle). It waits without limit for a client
// that stops in the middle of a statement, such as a COPY, whatever statement_timeout is. Only another session can end
// that. It finds the transaction by this lock, which no connection string can change and no pooler hides.
func mark(owner string) uint32 { return crc32.ChecksumIEEE([]byte(owner)) }

// markSQL returns the statement that marks the current transaction.
func markSQL(owner string) string {
	return fmt.Sprintf("SELECT pg_advisory_xact_lock_shared(%d, %d)", markClass, int32(mark(owner)))
}

// sqlEndStuck terminates backends that wait for their client in a marked transaction. It selects them first, because
// the planner must not decide when a condition with a side effect runs. A role may terminate its own backends.
const sqlEndStuck = `
WITH stuck AS MATERIALIZED (
     SELECT l.pid FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
      WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND l.classid::bigint = @class::bigint AND l.objid::bigint = ANY (@marks::bigint[])
        AND (@pid::bigint = 0 OR l.pid = @pid::bigint)
        AND a.wait_event_type = 'Client' AND a.xact_start <= clock_timestamp() - @older::interval)
SELECT pid FROM stuck WHERE pg_terminate_backend(pid)`

// EndStuck terminates the transactions of the given owners (Config.Mark) that started longer ago than older and wait
// for their client, and returns their number. Statements that are still running are not interrupted.
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
		return 0, fmt.Errorf("end stuck transactions: %w", err)
	}
	ended, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	if err != nil {
		return 0, fmt.Errorf("end stuck transactions: %w", err)
	}
	return len(ended), nil
}

// endWithin bounds how long terminating an abandoned transaction may take.
const endWithin = 2 * time.Second

// endGivenUp terminates, over another connection, a transaction that ended with err because its statement was not
// answered. If the network has lost the connection, the server does not know that the client is gone and would keep its
// locks.
func (p *Pool) endGivenUp(ctx context.Context, conn *pgconn.PgConn, err error) {
	if p.owner == "" || !conn.IsClosed() || Code(err) != "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
	defer cancel()
	_, _ = endStuck(ctx, p, []string{p.owner}, conn.PID(), 0) // best effort
}
