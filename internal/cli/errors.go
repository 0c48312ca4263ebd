package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgerrcode"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
)

// The causes with which a command's context ends.
var (
	errInterrupted = errors.New("interrupted")
	errTimeout     = errors.New("timed out")
)

// usageError is a command line that cannot be run.
type usageError struct {
	Cause string
	Usage string // the usage line of the command it was meant for
	Next  string
}

func (e *usageError) Error() string { return e.Cause }

// codeError ends a command whose result was printed already with a code that is not 0. Cause and Next are for programs:
// the result has told people.
type codeError struct {
	Code  job.ExitCode
	Cause string
	Next  string
}

func (e *codeError) Error() string { return cmp.Or(e.Cause, fmt.Sprintf("exit code %d", e.Code)) }

// hint adds the next command to an error.
type hint struct {
	Err  error
	Next string
}

func (h *hint) Error() string { return h.Err.Error() }
func (h *hint) Unwrap() error { return h.Err }

// withNext adds the next command to err; nil stays nil.
func withNext(err error, next string) error {
	if err == nil {
		return nil
	}
	return &hint{Err: err, Next: next}
}

// failure is an error as a person and the caller of the process see it.
type failure struct {
	Code   job.ExitCode
	Causes []string
	Usage  string
	Next   string
	Reason reason.Code // empty: none is known
	// Problems are the faults of a job file, of which Causes are the texts; File is the job file of another failure.
	Problems job.Problems
	File     string
}

// explain turns the error of a command, whose context is ctx, into code, cause and next command.
func explain(ctx context.Context, err error) failure {
	f := failure{Code: job.ExitFailed, Causes: []string{oneLine(err)}, Reason: reason.Of(err).Code}
	var (
		usage    *usageError
		problems job.Problems
		refusal  *job.Refusal
		server   *pg.ServerError
		next     *hint
		done     *codeError
	)
	if errors.As(err, &next) {
		f.Next = next.Next
	}
	switch cause := context.Cause(ctx); {
	case errors.As(err, &usage):
		f.Code, f.Usage, f.Next = job.ExitUsage, usage.Usage, usage.Next
	case errors.As(err, &done):
		f.Code, f.Causes, f.Next = done.Code, []string{done.Error()}, done.Next
	case errors.As(err, &problems):
		f.Code, f.Causes, f.Problems = job.ExitUsage, nil, problems
		for _, p := range problems {
			f.Causes = append(f.Causes, p.String())
		}
	case errors.As(err, &server):
		f.Code, f.Causes, f.Next = job.ExitUsage, []string{server.Cause}, server.Cure
	case errors.As(err, &refusal):
		f.Code, f.Causes, f.Next = refusal.Code, []string{refusal.Cause}, cmp.Or(refusal.Next, f.Next)
	case errors.Is(cause, errInterrupted):
		f.Code, f.Causes = job.ExitInterrupted, []string{errInterrupted.Error()}
	case errors.Is(cause, errTimeout):
		f.Code, f.Causes = job.ExitTimeout, []string{timeoutCause(err)}
		_, f.Next = unreachable(err, f) // what did not answer in time is a thing to look at
		f.Next = cmp.Or(f.Next, "the same command with a longer --timeout")
	default:
		f.Code, f.Next = unreachable(err, f)
	}
	return f
}

// dsnForm is the form of a connection string.
const dsnForm = `"host=… port=… dbname=… user=…" or postgres://USER@HOST:PORT/DATABASE`

// passwordSources lists what to check when the database refuses a password.
const passwordSources = "check user in dsn, and where its password is from: dsn_password_file or dsn_password_command in the settings, " +
	"KAPPACTL_DSN_PASSWORD_FILE, PGPASSWORD or the passfile (kappactl context show prints which)"

// unreachable gives 11 to errors of the way to the servers, and keeps f's code for others.
func unreachable(err error, f failure) (job.ExitCode, string) {
	var (
		database *pg.ConnectError
		unsure   *pg.CommitError
		schema   *pg.SchemaError
		broker   *kafka.ConnectError
		login    *pg.LoginError
		store    *archive.S3Error
	)
	switch {
	case errors.As(err, &store):
		return job.ExitUnreachable, f.Next
	case errors.As(err, &login):
		return job.ExitUnreachable, cmp.Or(f.Next, passwordSources)
	case errors.As(err, &schema):
		return job.ExitUnreachable, cmp.Or(f.Next, "kappactl init")
	case errors.As(err, &database) && database.Host == "": // not even an address could be read
		return job.ExitUsage, cmp.Or(f.Next, "correct --dsn, KAPPACTL_DSN or the dsn of the context: "+dsnForm)
	case errors.As(err, &database):
		return job.ExitUnreachable, cmp.Or(f.Next, "check --dsn, KAPPACTL_DSN or the context in the config file")
	case errors.As(err, &broker):
		return job.ExitUnreachable, cmp.Or(f.Next, broker.Cure())
	case pg.Code(err) == pgerrcode.InsufficientPrivilege: // insufficient_privilege
		return job.ExitUnreachable, cmp.Or(f.Next, "kappactl init --print   # ends with the rights that are needed")
	case errors.As(err, &unsure) && pg.Unreachable(err):
		return job.ExitUnreachable,
			cmp.Or(f.Next, "the same command again: what it asked for may have been written or not, and it goes on from there")
	case pg.ReadOnly(err):
		return job.ExitUnreachable,
			cmp.Or(f.Next, "connect to the primary (target_session_attrs=read-write in the connection string finds it), or wait until the server takes writes")
	case pg.Unreachable(err):
		return job.ExitUnreachable, f.Next
	}
	return f.Code, f.Next
}

// timeoutCause says what the command was waiting for when its time was over, where that is known.
func timeoutCause(err error) string {
	var (
		database *pg.ConnectError
		broker   *kafka.ConnectError
	)
	switch {
	case errors.As(err, &database):
		return errTimeout.Error() + ": no answer from PostgreSQL at " + database.Host
	case errors.As(err, &broker):
		return errTimeout.Error() + ": no answer from Kafka at " + strings.Join(broker.Brokers, ",")
	case err == nil || errors.Is(err, errTimeout) || errors.Is(err, context.DeadlineExceeded):
		return errTimeout.Error()
	}
	return errTimeout.Error() + ": " + oneLine(err)
}

// oneLine keeps an error of a server, which may have several lines, on one.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// String is the text for the error stream.
func (f failure) String() string {
	var b strings.Builder
	for _, cause := range f.Causes {
		fmt.Fprintf(&b, "error: %s\n", cause)
	}
	if f.Usage != "" {
		fmt.Fprintf(&b, "usage: %s\n", f.Usage)
	}
	if f.Next != "" {
		fmt.Fprintf(&b, "next: %s\n", f.Next)
	}
	return job.Printable(b.String())
}

// exitWith ends a command that has printed its result.
func exitWith(code job.ExitCode) error {
	if code == job.ExitOK {
		return nil
	}
	return &codeError{Code: code}
}

// chain is an error and what it wraps, outermost first, one line each with its type: what --debug prints below the
// cause.
func chain(err error) []string {
	var out []string
	for depth := ""; err != nil; depth += "  " {
		out = append(out, fmt.Sprintf("%s%T: %s", depth, err, oneLine(err)))
		switch wrapped := err.(type) { //nolint:errorlint // this level alone
		case interface{ Unwrap() error }:
			err = wrapped.Unwrap()
		case interface{ Unwrap() []error }:
			for _, one := range wrapped.Unwrap() {
				for _, line := range chain(one) {
					out = append(out, depth+"  "+line)
				}
			}
			return out
		default:
			return out
		}
	}
	return out
}
