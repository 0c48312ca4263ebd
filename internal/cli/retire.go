package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/status"
)

type retireOptions struct {
	removeOptions
	target     *target // nil with --all-expired over every job
	allExpired bool
	now        bool
}

func newRetire(a *app, run func(context.Context, retireOptions) error) *cobra.Command {
	o := retireOptions{removeOptions: removeOptions{app: a}}
	cmd := &cobra.Command{
		Use:   "retire [JOB [VERSION]]",
		Short: "Remove a standby version: its work, tables and consumer group",
		Long: `Stop a standby version for good and drop its tables. It is refused while the version is live, inside its rollback
window (without --now), pinned, or read by other relations. History stays. The table of v0, which was adopted, stays too. Off a
terminal it needs --yes.`,
		Example: "  kappactl retire pageviews v1 --now --yes\n  kappactl retire --all-expired --yes",
		Args:    between(nil, []string{"JOB", "VERSION"}),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && !o.allExpired {
				return usage(cmd, "missing argument JOB, or --all-expired")
			}
			if o.allExpired && o.now {
				return usage(cmd, "--all-expired retires versions whose window is over, and --now one whose window is not: give one of them")
			}
			if len(args) == 2 && o.allExpired {
				return usage(cmd, "--all-expired takes no VERSION")
			}
			if len(args) > 0 {
				t, err := parseTarget(cmd, args)
				if err != nil {
					return err
				}
				o.target = &t
			}
			return run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.allExpired, "all-expired", false, "every standby version whose rollback window is over")
	f.BoolVar(&o.now, "now", false, "do not wait for the end of the rollback window")
	o.add(f)
	return cmd
}

func runRetire(ctx context.Context, o retireOptions) error {
	if err := o.mayAsk("retire drops tables"); err != nil {
		return err
	}
	o.flags.yes = o.yes
	if !o.allExpired {
		return o.one(*o.target).run(ctx)
	}
	return o.all(ctx)
}

func (o retireOptions) one(t target) act {
	return act{
		app: o.app, verb: ledger.Retire, target: t, dryRun: o.dryRun, waitAgent: o.waitAgent.value,
		args: ledger.Args{Now: o.now}, confirm: o.confirm, agreed: o.yes,
	}
}

// all retires every standby version whose window is over and goes on when one is refused; the code is that of the first
// refusal.
func (o retireOptions) all(ctx context.Context) error {
	c, err := o.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	jobs, err := c.statuses(ctx, o.target)
	if err != nil {
		return err
	}
	expired, err := expiredStandbys(jobs, o.sys.Now())
	if err != nil {
		return err
	}
	results, failed := o.each(ctx, c, expired)
	return o.outcome(ctx, results, func(w io.Writer) error {
		if len(results) == 0 {
			_, err := fmt.Fprintln(w, "no standby version is past its rollback window: nothing to do")
			return err
		}
		for _, r := range results {
			if _, err := fmt.Fprintln(w, r.Message); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintln(w, "in", c.where())
		return err
	}, failed)
}

// each retires the versions one after the other and returns what became of each, with the first failure. It ends early
// only where an agent did not answer, which it would not for the next one either.
func (o retireOptions) each(ctx context.Context, c *client, expired []target) (results []actResult, first error) {
	results = make([]actResult, 0, len(expired))
	for _, t := range expired {
		result, err := o.one(t).do(ctx, c)
		unanswered := err != nil
		if err == nil && result.ExitCode != job.ExitOK {
			err = result.refusal()
		}
		if err != nil {
			f := explain(ctx, err)
			if unanswered {
				result = actResult{
					Job: t.Job, Version: t.Number.String(), Verb: ledger.Retire, ExitCode: f.Code,
					Message: strings.Join(f.Causes, "; "),
					Next:    f.Next, DryRun: o.dryRun, where: c.where(),
				}
			}
			result.Failure = f.doc()
			first = cmp.Or(first, err)
		}
		results = append(results, result)
		if unanswered {
			break
		}
	}
	return results, first
}

// expiredStandbys are the standby versions whose rollback window is over at now.
func expiredStandbys(jobs []status.Job, now time.Time) ([]target, error) {
	var out []target
	for _, j := range jobs {
		for _, v := range j.Versions {
			if v.Phase != job.Standby || v.StandbyUntil == nil || v.StandbyUntil.After(now) {
				continue
			}
			n, err := job.ParseNumber(v.Version)
			if err != nil {
				return nil, err
			}
			out = append(out, target{Job: j.Job, Number: &n})
		}
	}
	return out, nil
}

// confirm asks on the terminal.
func (o retireOptions) confirm(ref job.Ref, of status.Job) error {
	does := status.EffectOf(ledger.Retire, ref, of).Does
	return o.confirmed(fmt.Sprintf("retire %s %s? %s [y/N] ", ref.Job, ref.Number, does), agrees)
}
