package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/estimate"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/query"
	"github.com/kappactl/kappactl/reprocess/plan"
)

type deployOptions struct {
	*app
	file                 jobFile
	until                goal
	promote              job.PromoteMode
	again                bool
	allowColumnChange    bool
	acceptShorterHistory string
	ignoreDisk           bool
	dryRun               bool
	detailedExitCode     bool
	detach               bool
	report               string
	waitAgent            duration
}

func newDeploy(a *app, run func(context.Context, deployOptions) error) *cobra.Command {
	o := deployOptions{app: a}
	until := choice{of: []string{"staged", "caught_up", "verified", "live", "settled"}}
	promote := choice{of: []string{"auto", "manual"}}
	cmd := &cobra.Command{
		Use:   "deploy FILE...",
		Short: "Stage a job's new version, replay history beside the old one, verify, and promote when asked to",
		Long: `Stage the job file as the next version of its job and follow it: history is replayed into a table of its own, then it
catches up, its checks run, and it is promoted when promote in the file, --until live or --until settled says so. Otherwise it ends at verified,
with exit code 0, and prints the command that promotes it. --promote auto is --until live, and --promote manual ends at verified. An agent does the work: ending this command (Ctrl-C, --timeout) does not end the deployment, and
running it again goes on. What is live already is not deployed again.

FILE is a job file, a folder of job files, or - for standard input. Several are deployed at the same time, and the
command ends with the most severe exit code. Its variables, ${NAME}, get their values by --set, --vars or the environment.`,
		Example: `  kappactl deploy examples/pageviews.yaml
  kappactl deploy examples/pageviews.yaml --promote auto --timeout 30m -o json
  kappactl deploy jobs/ --until verified`,
		Args:        several,
		Annotations: map[string]string{timeoutKey: noTimeout},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.until, o.promote = goal(until.value), job.PromoteMode(promote.value)
			if o.until.flipped() && o.promote == job.PromoteManual {
				return usage(cmd, "--until %s needs a promote, and --promote manual leaves it to you", o.until)
			}
			files := jobFiles{app: a, args: args, flags: &o.file, deploys: true}
			return files.each(cmd.Context(), func(ctx context.Context, a *app, path string) error {
				o := o
				o.app, o.file.path = a, path
				return run(ctx, o)
			})
		},
	}
	f := cmd.Flags()
	o.file.flags(f)
	f.Var(&until, "until", "how far this deploy goes (default: live or verified, as promote in the file says)")
	f.Var(&promote, "promote", "auto is --until live; manual overrides promote in the file and ends at verified")
	f.BoolVar(&o.again, "again", false, "deploy a version that was rolled back; while it is standby, nothing is replayed")
	f.BoolVar(&o.allowColumnChange, "allow-column-change", false, "the serving view may get more columns")
	f.StringVar(&o.acceptShorterHistory, "accept-shorter-history", "",
		"accept this loss of history; the refusal prints the `TOKEN`")
	f.BoolVar(&o.ignoreDisk, "ignore-disk", false, "stage it although PostgreSQL's disk is estimated to be too small")
	f.BoolVar(&o.dryRun, "dry-run", false, "check everything, say what would be done, write nothing")
	f.BoolVar(&o.detailedExitCode, "detailed-exitcode", false, "exit 10 when there is nothing to do")
	f.BoolVar(&o.detach, "detach", false, "return once it is staged; with --quiet only the deployment's id is printed")
	a.yesFlag(f)
	reportFlag(f, &o.report)
	waitAgentFlag(f, &o.waitAgent)
	return cmd
}

func runDeploy(ctx context.Context, o deployOptions) error {
	started := o.sys.Now()
	c, err := o.compile(ctx, o.file)
	if err != nil {
		return err
	}
	if err := o.placeArchive(c.spec); err != nil {
		return err
	}
	cl, err := o.client(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	if !o.dryRun {
		if err := cl.needAgent(ctx, o.waitAgent.value); err != nil {
			return err
		}
		if err := o.protect(cl, "deploy "+string(c.spec.Job)); err != nil {
			return err
		}
	}
	staging, err := o.examined(ctx, cl, c)
	if err != nil {
		return err
	}
	if o.dryRun {
		return o.dry(ctx, cl, staging)
	}
	foreseen := o.foreseen(ctx, cl, staging)
	staged, err := cl.store.Stage(ctx, staging)
	if err != nil {
		return o.named(err)
	}
	if staged.Nothing || (len(staged.Applied) > 0 && !staged.FlipOnly && !staged.Resumed) {
		return o.nothing(ctx, cl, staged)
	}
	if !o.streams() {
		if err := o.announce(ctx, cl, staged, staging.Hash); err != nil {
			return err
		}
	}
	if o.detach {
		return o.detached(staged, foreseen)
	}
	return o.follow(ctx, cl, staged, started)
}

// examined returns what is to be staged, after everything that refuses a job before anything is written.
func (o deployOptions) examined(ctx context.Context, cl *client, c *compiled) (plan.Staging, error) {
	if err := o.confined(ctx, c, cl.pool); err != nil {
		return plan.Staging{}, withNext(err, "kappactl check "+o.file.String())
	}
	if err := cl.allowed(ctx, c.spec); err != nil {
		return plan.Staging{}, err
	}
	cluster, err := cl.clusterID(ctx, c.spec.Source.Topics)
	if err != nil {
		return plan.Staging{}, err
	}
	if err := cl.mayArchive(ctx, c.spec); err != nil {
		return plan.Staging{}, err
	}
	staging := o.staging(ctx, c, cluster)
	if !o.ignoreDisk {
		if err := o.room(ctx, cl, c, staging, estimate.DefaultRoom()); err != nil {
			return plan.Staging{}, o.named(err)
		}
	}
	return staging, o.mergeable(ctx, c)
}

// follow follows the deployment until it is as far as was asked for.
func (o deployOptions) follow(ctx context.Context, cl *client, staged plan.Staged, started time.Time) error {
	f := follower{
		app: o.app, client: cl, deployment: staged.Deployment, goal: o.until, resumed: staged.Resumed, reportDir: o.report,
		began: started,
	}
	d, code, err := f.run(ctx)
	if err != nil {
		return err
	}
	d.Next = o.withFile(d.Next)
	return f.conclude(ctx, d, code, staged)
}

// announce says what was staged, and what readers should know before it is promoted.
func (o deployOptions) announce(ctx context.Context, cl *client, staged plan.Staged, hash string) error {
	o.progress("%s", stagedLine(staged, hash))
	if staged.Live {
		return nil
	}
	notes, err := cl.store.BeforePromote(ctx, views(), job.Ref{Job: staged.Job, Number: staged.Number})
	for _, note := range notes {
		o.progress("note: when it is promoted: %s", note)
	}
	if pg.Unreachable(err) {
		return nil // it is staged, and following it waits for the database
	}
	return err
}

func (o deployOptions) staging(ctx context.Context, c *compiled, cluster string) plan.Staging {
	promote := o.promote
	if o.until.flipped() {
		promote = job.PromoteAuto
	}
	return plan.Staging{
		Spec: c.spec, Layout: c.query.Layout, Hash: c.hash, Dialect: dialectOf(c.spec), Engine: engineName(c.spec),
		Promote: promote, Until: string(o.until), Again: o.again, AllowColumnChange: o.allowColumnChange,
		AcceptShorterHistory: o.acceptShorterHistory, By: o.by(), GitRevision: gitRevision(ctx, o.file.path),
		ClusterID: cluster,
		File:      string(c.spec.Expanded), Serving: views(),
	}
}

// engineName is what version.engine notes: the version of the engine that runs the query, or the kind of another one.
func engineName(spec *job.Spec) string {
	if spec.Engine == job.SQL {
		return query.Engine()
	}
	return string(spec.Engine)
}

// named puts the file's name into the next command.
func (o deployOptions) named(err error) error {
	var r *job.Refusal
	if !errors.As(err, &r) {
		return err
	}
	return &job.Refusal{Code: r.Code, Cause: r.Cause, Next: o.withFile(r.Next), Err: err}
}

func (o deployOptions) withFile(next string) string {
	return strings.NewReplacer("in FILE", "in "+o.file.path, "FILE", o.file.String()).Replace(next)
}

func stagedLine(s plan.Staged, hash string) string {
	switch {
	case s.FlipOnly && len(s.Applied) > 0 && s.Live:
		return fmt.Sprintf("%s %s (%s) is live; deployment %d applies in place: %s", s.Job, s.Number, hash, s.Deployment,
			strings.Join(s.Applied, ", "))
	case s.Resumed:
		return fmt.Sprintf("%s %s (%s) is under way as deployment %d; going on with it", s.Job, s.Number, hash, s.Deployment)
	case s.FlipOnly:
		return fmt.Sprintf("%s %s (%s) is standby; deployment %d replays nothing", s.Job, s.Number, hash, s.Deployment)
	}
	return fmt.Sprintf("%s %s (%s) staged as deployment %d", s.Job, s.Number, hash, s.Deployment)
}
