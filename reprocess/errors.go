package reprocess

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/job/strict"
	"github.com/kappactl/kappactl/internal/pg"
)

// ErrNotFound is an unknown job, version, deployment or request.
var ErrNotFound = errors.New("not found")

// errLost says that somebody else holds the claim, or the phase is no longer the one expected: what was about to be
// written was not.
var errLost = errors.New("the claim or the expected phase was lost")

// errGone says that a deployment is no longer ours to control.
var errGone = errors.New("the deployment's claim was lost or a newer deployment governs the version")

// unknownJob is the refusal of a name that no job has; it names the job that is a typing error away.
func unknownJob(ctx context.Context, db pg.DB, name job.Name) error {
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

func refuse(code job.ExitCode, next, format string, args ...any) *job.Refusal {
	return &job.Refusal{Code: code, Cause: fmt.Sprintf(format, args...), Next: next}
}

func ambiguous(name job.Name, verb Verb, refs []job.Ref) error {
	names := make([]string, len(refs))
	for i, r := range refs {
		names[i] = r.Number.String()
	}
	return refuse(job.ExitUsage, fmt.Sprintf("kappactl %s %s %s", verb, name, names[0]),
		"%s of job %q is ambiguous; name one of: %s", verb, name, strings.Join(names, ", "))
}
