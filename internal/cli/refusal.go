package cli

import (
	"context"
	"errors"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// refusalResult is what deploy, adopt and drop print for programs when they are refused before anything is written.
type refusalResult struct {
	Job         job.Name     `json:"job"`
	ExitCode    job.ExitCode `json:"exit_code"`
	Message     string       `json:"message"`
	MessageCode reason.Code  `json:"message_code"`
	Next        string       `json:"next"`
}

// refused prints a refusal for programs and returns it. Other errors, and the stream of a deployment that never began, have no document.
func (a *app) refused(name job.Name, err error) error {
	var r *job.Refusal
	if !a.machine() || a.streams() || !errors.As(err, &r) {
		return err
	}
	f := explain(context.Background(), err)
	result := refusalResult{name, f.Code, r.Cause, reason.Of(err).Code, f.Next}
	return a.outcome(context.Background(), result, nil, err)
}

// refusedBy is refused for the answer of an agent.
func (a *app) refusedBy(name job.Name, answer *ledger.Answer) error {
	return a.refused(name, &job.Refusal{Code: answer.Code, Cause: answer.Text(), Next: answer.Next, Err: answer.Reason.Err()})
}
