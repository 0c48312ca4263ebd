package pg

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// PasswordError reports that the password for a new connection could not be obtained. A retry may succeed.
type PasswordError struct{ Err error }

func (e *PasswordError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *PasswordError) Unwrap() error { return e.Err }

// set puts the password into the configuration of one new connection.
func (f PasswordFunc) set(ctx context.Context, c *pgx.ConnConfig) error {
	password, err := f(ctx)
	if err != nil {
		return &PasswordError{err}
	}
	if password != "" {
		c.Password = password
	}
	return nil
}
