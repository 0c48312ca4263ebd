package checks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
)

// Query is SQL of a job file that returns rows. It runs with the rights of the checks role, read-only.
type Query struct {
	Ref     job.Ref // the version whose job file it is from
	Role    string  // of checks; empty: the session's, bounded by the rights of who deployed the version
	Timeout time.Duration
	SQL     string
	Select  string // expressions over the query's columns, as q.name
	Columns string // names and types of these
}

// Ask runs a query and scans each of its rows; Why explains an error.
func Ask(ctx context.Context, pool *pg.Pool, q Query, to []any, row func() error) error {
	limited, cancel := context.WithTimeout(ctx, q.Timeout+slack)
	defer cancel()
	r := &Run{Runner: Runner{Pool: pool, Role: q.Role}, Candidate: job.Version{Ref: q.Ref}}
	err := pool.ReadCommitted(limited, func(tx *pg.Tx) error {
		if err := r.bound(limited, tx, q); err != nil {
			return err
		}
		rows, err := fenced(tx.Raw())(limited, q.text(), q.Columns)
		if err != nil {
			return err
		}
		if _, err := pgx.ForEachRow(rows, to, row); err != nil {
			return err
		}
		if err := leaveNothing(limited, tx); err != nil {
			return err
		}
		return errDone
	})
	if errors.Is(err, errDone) {
		return nil
	}
	return err
}

// Why is the reason for which a query gave no rows.
func Why(err error) reason.Reason {
	var known noAnswer
	if errors.As(err, &known) {
		return known.why
	}
	return reason.Error(err)
}

func (q Query) text() string {
	return fmt.Sprintf("SELECT %s FROM (%s\n) AS q", q.Select, job.Unended(q.SQL))
}

// bound makes the transaction one in which the query may run.
func (r *Run) bound(ctx context.Context, tx *pg.Tx, q Query) error {
	if err := job.ReadsOnly(q.SQL); err != nil {
		return err
	}
	r.Due = []job.Check{{SQL: q.SQL}}
	if err := r.confine(ctx, tx); err != nil {
		return err
	}
	if why := r.refused[""]; why != "" {
		return noAnswer{reason.CheckError(why)}
	}
	if err := r.fence(ctx, tx); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, fmt.Sprintf(`SET LOCAL statement_timeout = %d; SET TRANSACTION READ ONLY`,
		q.Timeout.Milliseconds()))
	return err
}
