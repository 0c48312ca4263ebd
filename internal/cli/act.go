package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/status"
)

const (
	// answerEvery is how often a command asks for the answer to its request.
	answerEvery = 100 * time.Millisecond
	// flipTimeout leaves an agent its minute of tries to flip (promote.deadline), so that it, and not this command, says
	// who is in the way.
	flipTimeout = "90s"
)

// act is a request to the agents: it is written down, one of them does it and answers.
type act struct {
	*app
	verb   ledger.Verb
	target target
	args   ledger.Args
	dryRun bool
	// waitAgent is how long an agent is waited for.
	waitAgent time.Duration
	// confirm is asked with the version before anything is written; nil asks nothing.
	confirm func(job.Ref, status.Job) error
	// agreed is whether --yes was given.
	agreed bool
}

// actResult is the output of an act.
type actResult struct {
	Job      job.Name     `json:"job"`
	Version  string       `json:"version"`
	Verb     ledger.Verb  `json:"verb"`
	ExitCode job.ExitCode `json:"exit_code"`
	Message  string       `json:"message"`
	// MessageCode is empty where the message is not an agent's.
	MessageCode reason.Code `json:"message_code"`
	Next        string      `json:"next"`
	DryRun      bool        `json:"dry_run"`
	where
	// Checks are those of a version that checks keep from being promoted, with what each said.
	Checks []status.Check `json:"checks,omitempty"`
	// Failure is set in a list whose element failed.
	Failure *failureDoc `json:"failure,omitempty"`

	cause error // the reason of a refusal
}

func (a act) run(ctx context.Context) error {
	c, err := a.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	result, err := a.do(ctx, c)
	if err != nil {
		return err
	}
	if result.ExitCode == job.ExitOK {
		return a.result(result, result.print)
	}
	return a.outcome(ctx, result, nil, result.refusal())
}

// do finds the version, asks, and returns the answer, or with dryRun what would be done. Nothing is printed.
func (a act) do(ctx context.Context, c *client) (actResult, error) {
	ref, err := c.resolve(ctx, a.target, a.verb)
	if err != nil {
		return actResult{}, err
	}
	if err := c.needAgent(ctx, a.waitAgent); err != nil {
		return actResult{}, err
	}
	if a.dryRun {
		return a.tried(ctx, c, ref)
	}
	notes, err := a.notes(ctx, c, ref)
	if err != nil {
		return actResult{}, err
	}
	for _, note := range notes {
		a.progress("note: %s", note)
	}
	if a.confirm != nil {
		of, err := c.store.Status(ctx, ref.Job)
		if err != nil {
			return actResult{}, err
		}
		if err := a.confirm(ref, of); err != nil {
			return actResult{}, err
		}
	}
	return a.asked(ctx, c, ref)
}

// asked writes the request and returns the answer.
func (a act) asked(ctx context.Context, c *client, ref job.Ref) (actResult, error) {
	answer, err := a.ask(ctx, c, ref)
	if err != nil {
		return actResult{}, err
	}
	result := actResult{
		Job: ref.Job, Version: ref.Number.String(), Verb: a.verb, ExitCode: answer.Code, Message: answer.Text(),
		MessageCode: answer.Reason.Code, Next: answer.Next, DryRun: a.dryRun, where: c.where(), cause: answer.Reason.Err(),
	}
	if a.agreed && answer.Reason.Code == reason.CodeInsideWindow {
		result.Next += " --yes"
	}
	if answer.Code == job.ExitChecks {
		result.Checks = checksOf(ctx, c, ledger.Deployment{Job: ref.Job, Number: ref.Number})
	}
	return result, nil
}

// tried lets an agent do the act up to its commit and roll it back: a refusal is that of the act, and otherwise the
// result describes what the act would do.
func (a act) tried(ctx context.Context, c *client, ref job.Ref) (actResult, error) {
	a.args.DryRun = true
	result, err := a.asked(ctx, c, ref)
	if err != nil || result.ExitCode != job.ExitOK {
		return result, err
	}
	return a.plan(ctx, c, ref)
}

// notes are what a person should know before the act.
func (a act) notes(ctx context.Context, c *client, ref job.Ref) ([]string, error) {
	if a.verb != ledger.Promote {
		return nil, nil
	}
	return c.store.BeforePromote(ctx, views(), ref)
}

// ask writes the request and waits for the answer.
func (a act) ask(ctx context.Context, c *client, ref job.Ref) (*ledger.Answer, error) {
	return a.answered(ctx, c, ledger.Request{Job: ref.Job, Number: ref.Number, Verb: a.verb, Args: a.args, By: a.by()},
		fmt.Sprintf("kappactl status %s   # an agent still answers the request", ref.Job))
}

// answered writes a request and waits for its answer; comeBack is what to run when that takes too long.
func (a *app) answered(ctx context.Context, c *client, r ledger.Request, comeBack string) (*ledger.Answer, error) {
	if r.Verb.ReadersNotice() && !r.Args.DryRun {
		if err := a.protect(c, fmt.Sprintf("%s %s", strings.ReplaceAll(string(r.Verb), "_", " "), r.Job)); err != nil {
			return nil, err
		}
	}
	id, err := c.store.Ask(ctx, r)
	if err != nil {
		return nil, err
	}
	a.log().Debug("asked", "request", id, "verb", r.Verb, "job", r.Job, "version", r.Number.String())
	w := newPatience(a, c)
	for {
		answer, err := c.store.Answer(ctx, id)
		if err == nil && answer != nil {
			return answer, nil
		}
		if err := w.pause(ctx, answerEvery, err); err != nil {
			return nil, withNext(err, comeBack)
		}
	}
}

func (r actResult) refusal() error {
	return &job.Refusal{Code: r.ExitCode, Cause: r.Message, Next: r.Next, Err: r.cause}
}

// refusal is the error of an answer that refuses.
func refusal(answer *ledger.Answer) error {
	return &job.Refusal{Code: answer.Code, Cause: answer.Text(), Next: answer.Next, Err: answer.Reason.Err()}
}

func (r actResult) print(w io.Writer) error {
	text := r.Message
	if text == "" {
		text = fmt.Sprintf("%s %s %s: done", r.Verb, r.Job, r.Version)
	}
	if r.Database != "" {
		text += "\nin " + r.String()
	}
	if r.Next != "" {
		text += "\nnext: " + r.Next
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

// plan describes what an act would do, after a dry run of it has passed.
func (a act) plan(ctx context.Context, c *client, ref job.Ref) (actResult, error) {
	of, err := c.store.Status(ctx, ref.Job)
	if err != nil {
		return actResult{}, err
	}
	v, err := versionOf(of, ref.Number)
	if err != nil {
		return actResult{}, err
	}
	notes, err := a.notes(ctx, c, ref)
	if err != nil {
		return actResult{}, err
	}
	would := status.EffectOf(a.verb, ref, of).Would
	message := fmt.Sprintf("would %s %s %s (%s, %s): %s", a.verb, ref.Job, v.Version, v.Phase, v.Verdict, would)
	for _, note := range notes {
		message += "\nnote: " + note
	}
	return actResult{Job: ref.Job, Version: v.Version, Verb: a.verb, DryRun: true, Message: message, where: c.where()}, nil
}
