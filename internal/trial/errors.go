package trial

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kappactl/kappactl/internal/query"
)

// testError is a fault of a test, or of the SQL that it runs. The test fails; the others still run.
type testError struct{ text string }

func (e *testError) Error() string { return e.text }

func failf(format string, args ...any) error { return &testError{fmt.Sprintf(format, args...)} }

// servedError turns an error caused by SQL of the job file into a testError and returns errors of the database
// unchanged.
func servedError(err error) error {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return failf("serve.columns or serve.where (PostgreSQL SQL): %s", server.Message)
	}
	return err
}

// failure returns the text of an error that is the fault of the test.
func failure(err error) (string, bool) {
	var own *testError
	var exec *query.ExecError
	switch {
	case errors.As(err, &own):
		return own.text, true
	case errors.As(err, &exec):
		cause, _, _ := strings.Cut(strings.Join(strings.Fields(exec.Error()), " "), " LINE 1:")
		return "the query (DuckDB SQL) fails on the given records: " + cause, true
	}
	return "", false
}
