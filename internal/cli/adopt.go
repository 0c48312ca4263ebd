package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

type adoptOptions struct {
	*app
	job             job.Name
	view            job.ViewName
	leaveDependants bool
	dryRun          bool
	waitAgent       duration
}

func newAdopt(a *app, run func(context.Context, adoptOptions) error) *cobra.Command {
	o := adoptOptions{app: a}
	var view string
	cmd := &cobra.Command{
		Use:   "adopt JOB --view SCHEMA.NAME",
		Short: "Take over an existing table or view as version 0 of a job",
		Long: `Take over a table, or a view, that a job is to serve from now on. In one transaction the table is renamed to JOB__v0, and a view
of its old name takes its place, with the same columns, owner, grants and comments: readers notice nothing, and who writes the table goes on
through the view. Views over the table read the new view from then on. That is version v0 of the job: live, never written by kappactl.
Then deploy replays v1 beside it, and promote flips readers over; rollback --stale goes back. The table itself is never dropped.

It is refused when something depends on the table that cannot follow to a view (materialized views, foreign keys, publications): it is
listed, and --leave-dependants leaves it with the table. A view is adopted by a copy of its definition, and keeps all its readers.`,
		Example: "  kappactl adopt pageviews --view public.pageviews_hourly --dry-run\n  kappactl adopt pageviews --view public.pageviews_hourly",
		Args:    exactly("JOB"),
		Annotations: map[string]string{
			timeoutKey: flipTimeout,
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := parseTarget(cmd, args)
			if err != nil {
				return err
			}
			if t.Number != nil {
				return usage(cmd, "adopt begins a job: name it without a version")
			}
			if view == "" {
				return usage(cmd, "missing --view SCHEMA.NAME: what the job is to take over, as serve.view of its file")
			}
			if o.view, err = job.ParseViewName(view); err != nil {
				return usage(cmd, "--view: %s", err)
			}
			o.job = t.Job
			return run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&view, "view", "", "the table or view, `SCHEMA.NAME` as in serve.view (required)")
	f.BoolVar(&o.leaveDependants, "leave-dependants", false, "what cannot follow to the view stays with the table")
	f.BoolVar(&o.dryRun, "dry-run", false, "say what would be done and do nothing")
	a.yesFlag(f)
	waitAgentFlag(f, &o.waitAgent)
	return cmd
}

// adoptResult is the output of adopt.
type adoptResult struct {
	Job         job.Name     `json:"job"`
	Version     string       `json:"version"`
	View        string       `json:"view"`
	Table       string       `json:"table"`
	Kind        string       `json:"kind"`
	Owner       string       `json:"owner"`
	Columns     []planColumn `json:"columns"`
	Follow      []string     `json:"follow"` // views over it that read the new view
	Stay        []string     `json:"stay"`   // what goes on with the table
	DryRun      bool         `json:"dry_run"`
	Message     string       `json:"message"`
	MessageCode reason.Code  `json:"message_code"` // empty in a dry run
	Next        string       `json:"next"`
}

func runAdopt(ctx context.Context, o adoptOptions) error {
	c, err := o.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	args := ledger.Args{View: &o.view, LeaveDependants: o.leaveDependants}
	plan, err := c.store.Adoption(ctx, o.job, args, views())
	if err != nil {
		return err
	}
	r := o.outline(plan)
	if o.dryRun {
		r.Message = fmt.Sprintf("would adopt %s %s as %s", plan.Kind, r.View, plan.To)
		return o.result(r, r.print)
	}
	if err := c.needAgent(ctx, o.waitAgent.value); err != nil {
		return err
	}
	answer, err := o.answered(ctx, c, ledger.Request{Job: o.job, Verb: ledger.Adopt, Args: args, By: o.by()},
		fmt.Sprintf("kappactl history %s   # an agent still answers the request", o.job))
	if err != nil {
		return err
	}
	if answer.Code != job.ExitOK {
		return refusal(answer)
	}
	r.Message, r.MessageCode, r.Next = answer.Text(), answer.Reason.Code, answer.Next
	return o.result(r, r.print)
}

func (o adoptOptions) outline(a job.Adoption) adoptResult {
	r := adoptResult{
		Job: o.job, Version: a.To.Number.String(), View: pg.Ident(a.View.Schema, a.View.Name),
		Table: pg.Ident(a.View.Schema, a.To.Table()),
		Kind:  a.Kind, Owner: a.Owner, Columns: []planColumn{}, Follow: append([]string{}, a.Follow...),
		Stay: append([]string{}, a.Stay...), DryRun: o.dryRun,
	}
	for _, c := range a.Columns {
		r.Columns = append(r.Columns, planColumn{c.Name, c.Type})
	}
	return r
}

func (r adoptResult) print(w io.Writer) error {
	text := r.Message
	if r.DryRun {
		text += fmt.Sprintf("\n  %s becomes %s; owner, grants and comments stay", r.View, r.Table)
		if r.Kind == "view" {
			text = fmt.Sprintf("%s\n  its definition becomes %s, which it reads; owner, grants and comments stay", r.Message,
				r.Table)
		}
		for _, c := range r.Columns {
			text += fmt.Sprintf("\n  column %s %s", c.Name, c.Type)
		}
	}
	for _, name := range r.Follow {
		text += "\n  follows to the view: " + name
	}
	for _, name := range r.Stay {
		text += "\n  stays with the table: " + name
	}
	if r.Next != "" {
		text += "\nnext: " + r.Next
	}
	_, err := fmt.Fprintln(w, text)
	return err
}
