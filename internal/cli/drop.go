package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/plan"
)

type dropOptions struct {
	removeOptions
	job      job.Name
	keepView bool
}

func newDrop(a *app, run func(context.Context, dropOptions) error) *cobra.Command {
	o := dropOptions{removeOptions: removeOptions{app: a}}
	cmd := &cobra.Command{
		Use:   "drop JOB",
		Short: "Remove a job: its work, view, tables and consumer groups",
		Long: `Remove everything of a job: its work stops, then the serving view, the tables of all versions, their consumer groups, positions
and dead letters go. History stays, and a later job of that name goes on counting versions where this one ended. With --keep-view the
view stays, with the table that it reads, as they are: nothing writes them any more. A table that was adopted stays in any case.

It is refused while a version is rolled out, and while other relations read the view or a table; they are listed. On a terminal it asks for
the job's name, elsewhere it needs --yes. Once begun it is finished by an agent, also when this command ends; run again, it waits.`,
		Example:     "  kappactl drop pageviews --dry-run\n  kappactl drop pageviews --keep-view --yes",
		Args:        exactly("JOB"),
		Annotations: map[string]string{timeoutKey: flipTimeout},
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := parseTarget(cmd, args)
			if err != nil {
				return err
			}
			if t.Number != nil {
				return usage(cmd, "drop is about a whole job: name it alone, or use retire or abort for a version")
			}
			o.job = t.Job
			return run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.keepView, "keep-view", false, "keep the view and the table that it reads")
	o.add(f)
	return cmd
}

// dropResult is the output of drop.
type dropResult struct {
	plan.Removal
	DryRun      bool        `json:"dry_run"`
	Dropped     bool        `json:"dropped"`
	Message     string      `json:"message"`
	MessageCode reason.Code `json:"message_code"` // empty in a dry run
	Next        string      `json:"next"`
	where
}

func runDrop(ctx context.Context, o dropOptions) error {
	if err := o.mayAsk("drop removes a job"); err != nil {
		return err
	}
	c, err := o.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	plan, err := c.store.Removal(ctx, o.job, o.keepView, views())
	if errors.Is(err, ledger.ErrNotFound) {
		return o.gone(ctx, c, err)
	}
	if err != nil {
		return err
	}
	r := dropResult{Removal: plan, DryRun: o.dryRun, Message: fmt.Sprintf("would drop job %s:", o.job), where: c.where()}
	o.flags.yes = o.yes
	if o.dryRun {
		return o.result(r, r.print)
	}
	if err := c.needAgent(ctx, o.waitAgent.value); err != nil {
		return err
	}
	if err := o.confirm(plan); err != nil {
		return err
	}
	answer, err := o.answered(ctx, c, ledger.Request{
		Job: o.job, Verb: ledger.Drop,
		Args: ledger.Args{KeepView: o.keepView}, By: o.by(),
	},
		fmt.Sprintf("kappactl drop %s   # an agent still answers the request", o.job))
	if err != nil {
		return err
	}
	if answer.Code != job.ExitOK {
		return refusal(answer)
	}
	r.Dropped, r.Message, r.MessageCode, r.Next = true, answer.Text(), answer.Reason.Code, answer.Next
	return o.result(r, r.print)
}

// gone reports that the job was dropped before, so that a drop can be run again.
func (o dropOptions) gone(ctx context.Context, c *client, unknown error) error {
	d, err := c.store.Dropped(ctx, o.job)
	if err != nil {
		return err
	}
	if d == nil {
		return unknown
	}
	r := dropResult{
		Removal: plan.Removal{Job: o.job, View: d.View, KeepView: d.KeptView}, DryRun: o.dryRun, Dropped: true,
		Message: fmt.Sprintf("job %s was dropped %s by %s: nothing to do", o.job, render.Time(&d.At), d.By),
		Next:    "kappactl history " + string(o.job),
		where:   c.where(),
	}
	return o.result(r, r.print)
}

func (r dropResult) print(w io.Writer) error {
	text := r.Message
	if r.DryRun && !r.Dropped {
		text += planLines(r.Removal)
	}
	text += "\nin " + r.String()
	if r.Next != "" {
		text += "\nnext: " + r.Next
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

func planLines(r plan.Removal) string {
	if r.UnderWay {
		return " it is being dropped already"
	}
	return "\n  " + strings.Join(r.Lines(), "\n  ")
}

// confirm asks for the job's name on the terminal.
func (o dropOptions) confirm(plan plan.Removal) error {
	return o.confirmed(fmt.Sprintf("drop job %s:%s\ntype the job's name to do it: ", o.job, planLines(plan)),
		func(answer string) bool { return answer == string(o.job) })
}
