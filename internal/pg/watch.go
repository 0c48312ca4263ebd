package pg

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// errUnanswered reports that the backend no longer works on a Long statement, so that no answer will come.
var errUnanswered = errors.New("the connection was given up: the server no longer works on its statement")

// unanswered returns errUnanswered if the statement was given up for that reason, otherwise err.
func unanswered(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errUnanswered) {
		return errors.Join(errUnanswered, err)
	}
	return err
}

// sqlWorks tests for states in which a backend surely does not run a statement. If activities are not tracked, the
// state is unknown.
const sqlWorks = `
SELECT coalesce(state NOT LIKE 'idle%' AND wait_event_type IS DISTINCT FROM 'Client', true)
  FROM pg_stat_activity WHERE pid = @pid::bigint`

// watched polls, over other connections, whether a backend still works on a Long statement. If it does not twice in a
// row, in about the time limit of other statements, watched ends the context. A connection can stay open, and even be
// acknowledged by an intermediary, although the server is gone.
func (p *Pool) watched(ctx context.Context, pid uint32) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		tick := time.NewTicker(p.answer.answer / 2)
		defer tick.Stop()
		for missed := absence(0); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			works := false
			look, end := context.WithTimeout(ctx, p.answer.answer/2)
			err := p.pool.QueryRow(look, sqlWorks, pgx.NamedArgs{"pid": int64(pid)}).Scan(&works)
			end()
			if missed.after(works, err); missed == 2 {
				cancel(errUnanswered)
				return
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// absence counts the consecutive polls in which a backend did not work on its statement.
type absence int

// after counts one poll. A failed poll proves nothing and resets the count.
func (a *absence) after(works bool, err error) {
	if works || err != nil && !errors.Is(err, pgx.ErrNoRows) {
		*a = 0
		return
	}
	*a++
}

// watch returns the function that polls a backend during Long statements; nil if the pool does not know its backends'
// ids.
func (p *Pool) watch(pid uint32) func(context.Context) (context.Context, context.CancelFunc) {
	if !p.direct {
		return nil
	}
	return func(ctx context.Context) (context.Context, context.CancelFunc) { return p.watched(ctx, pid) }
}

// reachesBackends reports whether connections reach the server directly. A pooler would report its own ids for the
// server's backends.
func reachesBackends(ctx context.Context, pool *pgxpool.Pool) bool {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return false
	}
	defer conn.Release()
	var pid uint32
	err = conn.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&pid)
	return err == nil && pid == conn.Conn().PgConn().PID()
}
