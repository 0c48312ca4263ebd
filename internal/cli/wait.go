package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/plan"
)

type waitOptions struct {
	*app
	target target
	goal   goal
	report string
}

func newWait(a *app, run func(context.Context, waitOptions) error) *cobra.Command {
	o := waitOptions{app: a}
	until := choice{of: []string{"caught_up", "verified", "live", "settled", "retired"}}
	cmd := &cobra.Command{
		Use:   "wait JOB [VERSION]",
		Short: "Attach to a running deployment and wait for it",
		Long: `Follow a version until it is as far as --for says. It ends as soon as that can no longer happen, with the exit code of
the reason. Nothing is changed; without --timeout it waits until then. --output jsonl prints what happens as it happens.`,
		Example:     "  kappactl wait pageviews --for live\n  kappactl wait pageviews v2 --for verified --timeout 10m",
		Args:        between([]string{"JOB"}, []string{"VERSION"}),
		Annotations: map[string]string{timeoutKey: noTimeout},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if until.value == "" {
				return usage(cmd, "missing flag --for: %s", strings.Join(until.of, ", "))
			}
			o.goal = goal(until.value)
			if o.target, err = parseTarget(cmd, args); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	cmd.Flags().Var(&until, "for", "how far it has to come (required)")
	reportFlag(cmd.Flags(), &o.report)
	return cmd
}

func runWait(ctx context.Context, o waitOptions) error {
	started := o.sys.Now()
	c, err := o.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	ref, err := o.version(ctx, c)
	if err != nil {
		return err
	}
	id, err := c.store.NewestDeployment(ctx, ref)
	if err != nil {
		return err
	}
	f := follower{app: o.app, client: c, deployment: id, goal: o.goal, resumed: true, reportDir: o.report, began: started}
	d, code, err := f.run(ctx)
	if err != nil {
		return err
	}
	return f.conclude(ctx, d, code, plan.Staged{})
}

// version is the one asked for, else the job's newest that has not ended; when all have, the newest of all.
func (o waitOptions) version(ctx context.Context, c *client) (job.Ref, error) {
	status, err := c.store.Status(ctx, o.target.Job)
	if err != nil {
		return job.Ref{}, err
	}
	if o.target.Number != nil {
		if _, err := versionOf(status, *o.target.Number); err != nil {
			return job.Ref{}, err
		}
		return job.Ref{Job: o.target.Job, Number: *o.target.Number}, nil
	}
	newest, open := job.Number(0), job.Number(0)
	for _, v := range status.Versions {
		n, err := job.ParseNumber(v.Version)
		if err != nil {
			return job.Ref{}, err
		}
		newest = max(newest, n)
		if !v.Phase.Ended() {
			open = max(open, n)
		}
	}
	if open > 0 {
		newest = open
	}
	return job.Ref{Job: o.target.Job, Number: newest}, nil
}
