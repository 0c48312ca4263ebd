package checks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
)

// HasViewSQL reports whether the view computes SQL of the job file, which can fail for a row.
func HasViewSQL(l job.Layout) bool {
	return l.Where != "" || slices.ContainsFunc(l.View, func(c job.ViewColumn) bool { return c.Computed })
}

// Unreadable returns why readers of a version's view would get an error: serve.columns or serve.where fails for one of
// its rows. It is zero if they would not, or if the table is too large to find out within the time given.
func (r Runner) Unreadable(ctx context.Context, v job.Version, within time.Duration) (reason.Reason, error) {
	if !HasViewSQL(v.Layout) {
		return reason.Reason{}, nil
	}
	counts := []string{"count(*)"}
	for _, c := range v.Layout.View {
		if c.Computed {
			counts = append(counts, "count(q."+pg.Ident(c.Name)+")")
		}
	}
	err := r.Pool.ReadOnly(ctx, func(tx *pg.Tx) error {
		ctx, cancel := context.WithTimeout(ctx, within+slack)
		defer cancel()
		if _, err := tx.Exec(ctx, fmt.Sprintf("SET LOCAL statement_timeout = %d", within.Milliseconds())); err != nil {
			return err
		}
		return pg.One(ctx, tx.Raw(), fmt.Sprintf("SELECT %s FROM (%s\n) AS q", strings.Join(counts, ", "), r.Views.Select(v)))
	})
	var server *pgconn.PgError
	switch {
	case err == nil || pg.Code(err) == pgerrcode.QueryCanceled:
		return reason.Reason{}, nil
	case errors.As(err, &server) && pgerrcode.IsSyntaxErrororAccessRuleViolation(server.Code) &&
		server.Code != pgerrcode.InsufficientPrivilege:
		return reason.Reason{}, nil // creating the view reports the error
	case errors.As(err, &server) && (pgerrcode.IsDataException(server.Code) ||
		pgerrcode.IsCardinalityViolation(server.Code) ||
		pgerrcode.IsPLpgSQLError(server.Code) || pgerrcode.IsProgramLimitExceeded(server.Code)):
		return reason.Unreadable(v.Ref, pg.Cause(err)), nil
	}
	return reason.Reason{}, fmt.Errorf("read the view of %s: %w", v.Ref, err)
}
