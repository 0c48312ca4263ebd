package law

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// ServeError is SQL of serve.columns or serve.where that PostgreSQL refuses.
type ServeError struct{ Err *pgconn.PgError }

func (e *ServeError) Error() string {
	text := "serve.columns or serve.where (PostgreSQL SQL): " + e.Err.Message
	if e.Err.Hint != "" {
		text += " (" + e.Err.Hint + ")"
	}
	return text
}

// Unwrap gives PostgreSQL's error.
func (e *ServeError) Unwrap() error { return e.Err }

// serveError tells SQL that is wrong, or over wrong names or types, from a database that fails.
func serveError(err error) error {
	var server *pgconn.PgError
	if errors.As(err, &server) && (strings.HasPrefix(server.Code, "42") && server.Code != "42501" || strings.HasPrefix(server.Code, "22")) {
		return &ServeError{server}
	}
	return err
}
