package pg

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// errUnanswered is a statement that may take long and whose backend no longer works on it: its answer will not come.
var errUnanswered = errors.New("the connection was given up: the server no longer works on its statement")

// unanswered tells a statement that was given up by its error.
func unanswered(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errUnanswered) {
		return errors.Join(errUnanswered, err)
	}
	return err
}

// sqlWorks goes by what a backend surely does not do: where activities are not tracked, its state says nothing.
const sqlWorks = `
SELECT coalesce(state NOT LIKE 'idle%' AND wait_event_type IS DISTINCT FROM 'Client', true)
  FROM pg_stat_activity WHERE pid = @pid::bigint`

// watched looks, over other connections, whether a backend still works on a Long statement, and ends the context when twice in a row, in
// about the time that any other statement has, it does not: a connection can stay open, and be acknowledged by something in
// between, with nothing behind it.
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

// absence is how many looks in a row have seen that a backend does not work on its statement.
type absence int

// after counts a look, which may have found no such backend. One that failed saw nothing: what comes after it is no second in a row.
func (a *absence) after(works bool, err error) {
	if works || err != nil && !errors.Is(err, pgx.ErrNoRows) {
		*a = 0
		return
	}
	*a++
}

// watch is what watches the Long statements of a backend; nil when the pool does not know its backends by their number.
func (p *Pool) watch(pid uint32) func(context.Context) (context.Context, context.CancelFunc) {
	if !p.direct {
		return nil
	}
	return func(ctx context.Context) (context.Context, context.CancelFunc) { return p.watched(ctx, pid) }
}

// reachesBackends says that no pooler is in between, which has numbers of its own for the server's backends.
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
