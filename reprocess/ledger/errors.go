package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/job/strict"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
)

// ErrNotFound is an unknown job, version, deployment or request.
var ErrNotFound = errors.New("not found")

// ErrLost means that another worker holds the claim, or the phase is no longer the one expected. Nothing was
// written.
var ErrLost = errors.New("the claim or the expected phase was lost")

// ErrMoved means that a version is no longer in the phase in which it was read.
var ErrMoved = errors.New("the version is in another phase")

// ErrGone means that a deployment is no longer ours to control.
var ErrGone = errors.New("the deployment's claim was lost or a newer deployment governs the version")

// UnknownJob is the refusal of a name that no job has; it names the job that is a typing error away.
func UnknownJob(ctx context.Context, db pg.DB, name job.Name) error {
	cause := fmt.Sprintf("there is no job %q", name)
	if names, err := jobNames(ctx, db); err == nil { // without them the answer is as true
		if near := strict.Nearest(string(name), names); near != "" {
			cause += "; did you mean " + near + "?"
		}
	}
	return &job.Refusal{Code: job.ExitUsage, Cause: cause, Next: "kappactl status", Err: ErrNotFound}
}

func unknownVersion(ref job.Ref) error {
	return &job.Refusal{
		Code: job.ExitUsage, Cause: fmt.Sprintf("job %q has no version %s", ref.Job, ref.Number),
		Next: fmt.Sprintf("kappactl status %s", ref.Job), Err: ErrNotFound,
	}
}

// Refuse is a refusal with an exit code, a formatted cause and the next command.
func Refuse(code job.ExitCode, next, format string, args ...any) *job.Refusal {
	return &job.Refusal{Code: code, Cause: fmt.Sprintf(format, args...), Next: next}
}

// RefuseFor is Refuse with a reason as its cause.
func RefuseFor(code job.ExitCode, next string, r reason.Reason) *job.Refusal {
	return &job.Refusal{Code: code, Cause: r.Text(), Next: next, Err: r.Err()}
}

func ambiguous(name job.Name, verb Verb, refs []job.Ref) error {
	names, commands := make([]string, len(refs)), make([]string, len(refs))
	for i, r := range refs {
		names[i] = r.Number.String()
		commands[i] = fmt.Sprintf("kappactl %s %s %s", verb, name, names[i])
	}
	return Refuse(job.ExitUsage, strings.Join(commands, ", or: "),
		"%s of job %q is ambiguous; name one of: %s", verb, name, strings.Join(names, ", "))
}
