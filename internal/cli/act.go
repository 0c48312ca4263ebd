package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess"
)

const (
	// answerEvery is how often a command looks for the answer to its request.
	answerEvery = 100 * time.Millisecond
	// flipTimeout leaves an agent its minute of tries to flip (promote.deadline), so that it, and not this command, says
	// who is in the way.
	flipTimeout = "90s"
)

// act is a request to the agents: it is written down, one of them does it and answers.
type act struct {
	*app
	verb   reprocess.Verb
	target target
	args   reprocess.Args
	dryRun bool
	// waitAgent is how long an agent is waited for.
	waitAgent time.Duration
	// confirm is asked with the version before anything is written; nil asks nothing.
	confirm func(job.Ref) error
}

// actResult is what an act prints.
type actResult struct {
	Job      job.Name       `json:"job"`
	Version  string         `json:"version"`
	Verb     reprocess.Verb `json:"verb"`
	ExitCode job.ExitCode   `json:"exit_code"`
	Message  string         `json:"message"`
	Next     string         `json:"next"`
	DryRun   bool           `json:"dry_run"`
	// Checks are those of a version that checks keep from being promoted, with what each said.
	Checks []reprocess.CheckStatus `json:"checks,omitempty"`
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
	if a.machine() {
		if err := a.result(result, nil); err != nil {
			return err
		}
	}
	return result.refusal()
}

// do finds the version, asks, and returns the answer, or with dryRun what would be done. Nothing is printed.
func (a act) do(ctx context.Context, c *client) (actResult, error) {
	ref, err := c.resolve(ctx, a.target, a.verb)
	if err != nil {
		return actResult{}, err
	}
	if a.dryRun {
		return a.plan(ctx, c, ref)
	}
	if err := c.needAgent(ctx, a.waitAgent); err != nil {
		return actResult{}, err
	}
	notes, err := a.notes(ctx, c, ref)
	if err != nil {
		return actResult{}, err
	}
	for _, note := range notes {
		a.progress("note: %s", note)
	}
	if a.confirm != nil {
		if err := a.confirm(ref); err != nil {
			return actResult{}, err
		}
	}
	answer, err := a.ask(ctx, c, ref)
	if err != nil {
		return actResult{}, err
	}
	result := actResult{
		Job: ref.Job, Version: ref.Number.String(), Verb: a.verb, ExitCode: answer.Code, Message: answer.Text, Next: answer.Next,
	}
	if answer.Code == job.ExitChecks {
		result.Checks = checksOf(ctx, c, reprocess.Deployment{Job: ref.Job, Number: ref.Number})
	}
	return result, nil
}

// notes are what a person should know before the act.
func (a act) notes(ctx context.Context, c *client, ref job.Ref) ([]string, error) {
	if a.verb != reprocess.Promote {
		return nil, nil
	}
	return c.store.BeforePromote(ctx, views(), ref)
}

// ask writes the request and waits for the answer.
func (a act) ask(ctx context.Context, c *client, ref job.Ref) (*reprocess.Answer, error) {
	return a.answered(ctx, c, reprocess.Request{Job: ref.Job, Number: ref.Number, Verb: a.verb, Args: a.args, By: a.by()},
		fmt.Sprintf("kappactl status %s   # the request stands; an agent goes on with it", ref.Job))
}

// answered writes a request and waits for its answer; comeBack is what to run when that takes too long.
func (a *app) answered(ctx context.Context, c *client, r reprocess.Request, comeBack string) (*reprocess.Answer, error) {
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
	return &job.Refusal{Code: r.ExitCode, Cause: r.Message, Next: r.Next}
}

func (r actResult) print(w io.Writer) error {
	text := r.Message
	if text == "" {
		text = fmt.Sprintf("%s %s %s: done", r.Verb, r.Job, r.Version)
	}
	if r.Next != "" {
		text += "\nnext: " + r.Next
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

// plan says what the act would be about; the agent decides by the state of the moment in which it acts.
func (a act) plan(ctx context.Context, c *client, ref job.Ref) (actResult, error) {
	status, err := c.store.Status(ctx, ref.Job)
	if err != nil {
		return actResult{}, err
	}
	v, err := versionOf(status, ref.Number)
	if err != nil {
		return actResult{}, err
	}
	live := "nothing"
	if status.Live != nil {
		live = *status.Live
	}
	would := map[reprocess.Verb]string{
		reprocess.Promote:  fmt.Sprintf("run the checks at equal offsets, then make %s read %s in place of %s", status.View, v.Version, live),
		reprocess.Rollback: fmt.Sprintf("make %s read %s in place of %s", status.View, v.Version, live),
		reprocess.Abort:    "stop its work and drop its table",
		reprocess.Pause:    "stop its work and keep its positions",
		reprocess.Resume:   "go on at its positions",
		reprocess.Retire:   "stop its work, drop its table " + ref.Table() + " and delete its consumer group " + ref.Group(),
	}
	if ref.Adopted() {
		would[reprocess.Retire] = "end the way back to it; its table " + ref.Table() + ", which was there before the job, stays"
	}
	notes, err := a.notes(ctx, c, ref)
	if err != nil {
		return actResult{}, err
	}
	message := fmt.Sprintf("would %s %s %s (%s, %s): %s", a.verb, ref.Job, v.Version, v.Phase, v.Verdict, would[a.verb])
	for _, note := range notes {
		message += "\nnote: " + note
	}
	return actResult{Job: ref.Job, Version: v.Version, Verb: a.verb, DryRun: true, Message: message}, nil
}
