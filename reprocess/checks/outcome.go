package checks

import (
	"errors"
	"regexp"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
)

// noAnswer is an error that gives the reason why a check has no answer.
type noAnswer struct{ why reason.Reason }

func (e noAnswer) Error() string { return e.why.Text() }

// errCutOff reports that the connection ended during a check.
var errCutOff = errors.New("the connection to PostgreSQL ended during a check")

// unanswered sets the result of a check whose SQL or comparison returned an error.
func (r *Run) unanswered(k job.Check, err error, out *Result) {
	code := pg.Code(err)
	if code == pgerrcode.UndefinedTable && r.With.Version == nil && r.With.Outcome != "" && mentions(err, r.With.Name) {
		out.Outcome, out.Detail, out.missing = r.With.Outcome, r.With.Missing, true
		return
	}
	var known noAnswer
	out.Outcome = NoAnswer
	switch {
	case errors.As(err, &known):
		out.Detail = known.why
	case code == pgerrcode.QueryCanceled && out.Seconds >= k.Timeout.Seconds():
		out.Detail = reason.CheckTimedOut(k.Timeout)
	case code == pgerrcode.QueryCanceled:
		out.Detail = reason.CheckCancelled()
	case code == pgerrcode.ReadOnlySQLTransaction:
		out.Detail = reason.CheckWrites(serverMessage(err))
	default:
		out.Detail = reason.CheckError(serverMessage(err))
	}
}

// mentions reports whether the text of an error names a relation.
func mentions(err error, name string) bool {
	return regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`).MatchString(err.Error())
}

// serverMessage returns the message of a PostgreSQL error, or the text of any other error.
func serverMessage(err error) string {
	var server *pgconn.PgError
	if !errors.As(err, &server) {
		return err.Error()
	}
	return pg.Said(server)
}

// isMissed reports whether another barrier may succeed.
func isMissed(err error) bool {
	var missed *Missed
	return errors.As(err, &missed)
}
