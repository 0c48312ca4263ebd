package mergecheck

import (
	"errors"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kappactl/kappactl/internal/pg"
)

// ServeError reports that PostgreSQL refuses the SQL of serve.columns or serve.where.
type ServeError struct {
	Err   *pgconn.PgError
	names []string // columns that the SQL may use
}

func (e *ServeError) Error() string {
	return "serve.columns or serve.where (PostgreSQL SQL): " + pg.Said(e.Err, e.names...)
}

// Unwrap returns PostgreSQL's error.
func (e *ServeError) Unwrap() error { return e.Err }

// serveError wraps an error that the SQL of the job file causes in a ServeError and returns other errors unchanged.
func (b *Bench) serveError(err error) error {
	var server *pgconn.PgError
	if !errors.As(err, &server) || server.Code == pgerrcode.InsufficientPrivilege {
		return err
	}
	if pgerrcode.IsSyntaxErrororAccessRuleViolation(server.Code) || pgerrcode.IsDataException(server.Code) {
		return &ServeError{server, b.version.Layout.ViewNames()}
	}
	return err
}
