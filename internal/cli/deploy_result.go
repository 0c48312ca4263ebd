package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/kappactl/kappactl/internal/follow"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/plan"
	"github.com/kappactl/kappactl/reprocess/status"
)

// deployResult is the output of deploy and wait.
type deployResult struct {
	Job        job.Name     `json:"job"`
	Version    string       `json:"version"`
	Deployment int64        `json:"deployment"`
	Phase      job.Phase    `json:"phase"`
	ExitCode   job.ExitCode `json:"exit_code"`
	Records    int64        `json:"records"`
	Seconds    float64      `json:"seconds"`
	Nothing    bool         `json:"nothing_to_do"`
	Resumed    bool         `json:"resumed"`
	Applied    []string     `json:"applied,omitempty"` // keys of the job file that are put in force without a replay
	DryRun     bool         `json:"dry_run"`
	Message    string       `json:"message"`
	// MessageCode is that of the deployment's message, of which Message is the text when the exit code is not 0.
	MessageCode reason.Code `json:"message_code"`
	Next        string      `json:"next"`

	Timings *ledger.Timings `json:"timings"` // null when nothing was replayed
	Report  *reportFiles    `json:"report"`  // null when none was asked for
	Checks  []status.Check  `json:"checks"`  // of the version, with what each said last; null: not known

	Failure *failureDoc `json:"failure,omitempty"`
}

// nothing reports that what the file says is live, or is now: nothing was left to an agent.
func (o deployOptions) nothing(ctx context.Context, c *client, s plan.Staged) error {
	result := deployResult{
		Job: s.Job, Version: s.Number.String(), Deployment: s.Deployment, Phase: job.Live, Nothing: true,
		Message: fmt.Sprintf("%s %s is live already: nothing to do", s.Job, s.Number),
	}
	if len(s.Applied) > 0 {
		result.Nothing, result.Applied = false, s.Applied
		result.Message = appliedLine(s)
	}
	if d, err := c.store.Deployment(ctx, s.Deployment); err == nil {
		result.Records = d.Records
	}
	if o.detailedExitCode && result.Nothing {
		result.ExitCode = job.ExitNothing
	}
	if err := o.alone(result); err != nil {
		return err
	}
	return exitWith(result.ExitCode)
}

func appliedLine(s plan.Staged) string {
	return fmt.Sprintf("%s %s stays live; applied in place: %s. Nothing is replayed", s.Job, s.Number,
		strings.Join(s.Applied, ", "))
}

// foreseen are warnings about a replay that this command does not follow. What cannot be asked is left to the
// deployment.
func (o deployOptions) foreseen(ctx context.Context, cl *client, s plan.Staging) []reason.Reason {
	if !o.detach {
		return nil
	}
	admin, _, err := cl.admin(ctx)
	if err != nil {
		return nil
	}
	defer admin.Close()
	limited, cancel := context.WithTimeout(ctx, brokerPatience)
	defer cancel()
	p, err := cl.store.Ahead(limited, s, cl.history(admin, s.Spec), o.sys.Now())
	if err != nil {
		return nil
	}
	return p.Warnings
}

// detached reports a deployment that is not followed; with --quiet as its id alone.
func (o deployOptions) detached(s plan.Staged, warnings []reason.Reason) error {
	result := deployResult{
		Job: s.Job, Version: s.Number.String(), Deployment: s.Deployment, Phase: job.Staged, Resumed: s.Resumed,
		Applied: s.Applied,
		Message: fmt.Sprintf("%s %s is deployment %d", s.Job, s.Number, s.Deployment),
		Next:    fmt.Sprintf("kappactl wait %s %s --for verified", s.Job, s.Number),
	}
	for _, w := range warnings {
		result.Message += "\nwarning: " + w.Text()
	}
	if !o.machine() && o.flags.quiet {
		_, err := fmt.Fprintln(o.sys.Out, s.Deployment)
		return err
	}
	return o.alone(result)
}

// alone prints the result of a command that follows nothing: a stream of a first and a last line.
func (o deployOptions) alone(r deployResult) error {
	if o.streams() {
		lines := follow.New(follow.Config{Out: o.out(), JSON: true})
		first := follow.Version{Job: r.Job, Version: status.Version{Version: r.Version, Phase: r.Phase}}
		lines.Start(o.sys.Now(), first, r.Deployment, r.Resumed, nil)
		if err := lines.Err(); err != nil {
			return err
		}
	}
	return o.printed(r)
}

// conclude prints where the deployment that was followed is, where its time went, what its checks said and where its
// report is, and ends with code.
func (f *follower) conclude(ctx context.Context, d ledger.Deployment, code job.ExitCode, s plan.Staged) error {
	a, result := f.app, f.result(ctx, d, code, s)
	if code != job.ExitOK {
		failed := &job.Refusal{Code: code, Cause: result.Message, Next: cmp.Or(d.Next, "kappactl status "+string(d.Job))}
		if a.machine() {
			if err := a.printed(a.failed(ctx, result, failed)); err != nil {
				return err
			}
		} else if result.Report != nil {
			a.tell("report: %s\n", result.Report.HTML)
		}
		return failed
	}
	result.Message = fmt.Sprintf("%s %s is %s: %s", d.Job, d.Number, d.Phase, render.Plural(d.Records, "record"))
	if !f.resumed { // else it has taken longer than this command
		result.Message += " in " + render.Duration(a.sys.Now().Sub(f.began))
	}
	if s.Live {
		result.Message = appliedLine(s)
	}
	if !d.Warning.IsZero() {
		result.Message += "\nwarning: " + d.Warning.Text()
	}
	return a.printed(result)
}

// failed adds the failure that a command ends with to its result.
func (a *app) failed(ctx context.Context, r deployResult, err error) deployResult {
	if a.failsAsData() {
		r.Failure = explain(ctx, err).doc()
		a.current().failed = true
	}
	return r
}

// result is the state of a deployment at its end.
func (f *follower) result(ctx context.Context, d ledger.Deployment, code job.ExitCode, s plan.Staged) deployResult {
	r := deployResult{
		Job: d.Job, Version: versionText(d), Deployment: d.ID, Phase: d.Phase, ExitCode: code, Records: d.Records,
		Seconds: f.took(), Resumed: s.Resumed, Applied: s.Applied, Message: d.Message,
		MessageCode: cmp.Or(d.MessageCode, d.VersionErrorCode), Next: d.Next,
		Timings: timingsOf(ctx, f.client, d), Checks: checksOf(ctx, f.client, d),
		Report: f.client.reported(ctx, f.app, f.reportDir, d.ID),
	}
	if code != job.ExitOK {
		r.Message = cmp.Or(d.Message, d.VersionError,
			fmt.Sprintf("%s %s is %s, its deployment %s", d.Job, d.Number, d.Phase, d.State))
		return r
	}
	r.Next = cmp.Or(r.Next, nextOf(d))
	return r
}

// nextOf returns the next command for a deployment that is as far as was asked for; empty: none.
func nextOf(d ledger.Deployment) string {
	switch {
	case d.State == job.Waiting && (d.Phase == job.Verified || d.Phase == job.Standby):
		return fmt.Sprintf("kappactl promote %s %s", d.Job, d.Number)
	case d.Phase == job.Live && d.State == job.Observing && d.Previous != nil:
		return job.RollbackCommand(d.Job, job.Number(*d.Previous)) + "   # until the rollback window is over"
	case d.Phase == job.Live && d.Previous == nil:
		return fmt.Sprintf("kappactl query %s", d.Job)
	}
	return ""
}

func (r deployResult) print(w io.Writer) error {
	text := r.Message
	if r.Timings != nil {
		text += "\n" + timingsLine(*r.Timings)
	}
	if r.Report != nil {
		text += "\nreport: " + r.Report.HTML
	}
	if r.Next != "" {
		text += "\nnext: " + r.Next
	}
	_, err := fmt.Fprintln(w, text)
	return err
}
