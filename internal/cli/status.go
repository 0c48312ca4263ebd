package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/batchlayer"
	"github.com/kappactl/kappactl/internal/agent"
	"github.com/kappactl/kappactl/internal/doctor"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess/status"
)

type statusOptions struct {
	*app
	target   *target // nil: every job
	exitCode bool
	wide     bool
}

func newStatus(a *app, run func(context.Context, statusOptions) error) *cobra.Command {
	o := statusOptions{app: a}
	cmd := &cobra.Command{
		Use:   "status [JOB [VERSION]]",
		Short: "Show jobs, their versions and how far each is",
		Long: `Show each version's phase, lag, rate and verdict with its reason; with JOB also its partitions. What is not known prints
as "-" and as null in JSON. -o csv prints a row for each version. With --exit-code it ends with 0 when the version asked for (without VERSION: the newest candidate,
else the live one) is ready, 3 when it is not caught up, 6 when it is ready and its promote would be refused because another
version is live than the one that it was verified beside, 7 when data is missing, and 8 when it is unhealthy.`,
		Example: "  kappactl status\n  kappactl status pageviews -o json\n  kappactl status pageviews v2 --exit-code",
		Args:    between(nil, []string{"JOB", "VERSION"}),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && o.exitCode {
				return usage(cmd, "--exit-code needs a JOB")
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
	cmd.Flags().BoolVar(&o.wide, "wide", false, "all columns on a terminal, also those that do not fit 80 characters")
	cmd.Flags().BoolVar(&o.exitCode, "exit-code", false, "say with the exit code whether it is ready")
	return cmd
}

func versionOf(s status.Job, n job.Number) (*status.Version, error) {
	if v := s.Find(n.String()); v != nil {
		return v, nil
	}
	return nil, &job.Refusal{
		Code: job.ExitUsage, Cause: fmt.Sprintf("job %q has no version %s", s.Job, n), Next: "kappactl status " +
			string(s.Job),
	}
}

func runStatus(ctx context.Context, o statusOptions) error {
	c, err := o.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	jobs, err := c.statuses(ctx, o.target)
	if err != nil {
		return err
	}
	defer o.remark(ctx, c, jobs)
	if o.target == nil {
		return o.printed(ctx, jobs, jobs, nil, func(w io.Writer) error { return o.all(w, jobs) })
	}
	shown := jobs[0]
	var asked *status.Version
	if o.target.Number != nil {
		if asked, err = versionOf(shown, *o.target.Number); err != nil {
			return err
		}
		shown.Versions = []status.Version{*asked}
	}
	printed := jobStatus{Job: shown}
	if printed.Archive, err = archivesOf(ctx, c.pool, shown.Job); err != nil {
		return err
	}
	if printed.Schedule, err = scheduleOf(ctx, c.pool, shown.Job); err != nil {
		return err
	}
	if printed.Layers, err = layersOf(ctx, c.pool, shown.Job); err != nil {
		return err
	}
	if asked != nil {
		printed.Layers = slices.DeleteFunc(printed.Layers,
			func(l batchlayer.Layers) bool { return l.Version != asked.Version })
	}
	if asked == nil {
		asked = shown.Main()
	}
	var failed error
	if o.exitCode {
		failed = notReady(shown, asked)
	}
	return o.printed(ctx, printed, []status.Job{shown}, failed, func(w io.Writer) error { return o.one(w, printed) })
}

// printed prints v, or as csv the jobs with a row for each version.
func (o statusOptions) printed(ctx context.Context, v any, jobs []status.Job, failed error,
	text func(io.Writer) error,
) error {
	if o.flags.output.value == string(render.FormatCSV) {
		v = statusRows(jobs)
	}
	return o.outcome(ctx, v, text, failed)
}

// table prints versions; partitions adds those of each.
func (o statusOptions) table(w io.Writer, jobs []status.Job, partitions bool) error {
	return printStatuses(w, o.style(), jobs, partitions, o.wide || !o.style().People)
}

// remark warns on the error stream when no agent is running: the state shown is then the last one known.
func (o statusOptions) remark(ctx context.Context, c *client, jobs []status.Job) {
	living, err := agent.Roster(ctx, c.pool, agent.AliveWithin)
	switch apart := doctor.HookDifferences(living); {
	case err != nil:
		o.log().Debug("agents are not known", "error", err)
	case len(living) == 0 && len(jobs) > 0:
		o.progress("warning: no agent is alive: nothing goes on, and this is how the last one left it; next: kappactl serve")
	case len(apart) > 0:
		o.progress("warning: agents have different hooks: %s; next: %s", strings.Join(apart, "; "), doctor.SameHooks)
	}
}

func (o statusOptions) all(w io.Writer, jobs []status.Job) error {
	if len(jobs) == 0 && o.style().People {
		_, err := fmt.Fprintln(w, "no job yet\nnext: kappactl deploy FILE")
		return err
	}
	return o.table(w, jobs, false)
}

func (o statusOptions) one(w io.Writer, printed jobStatus) error {
	style, s := o.style(), printed.Job
	if !style.People {
		return o.table(w, []status.Job{s}, false)
	}
	if _, err := fmt.Fprintf(w, "%s  view %s  live %s\n\n", style.Paint(render.Strong, string(s.Job)), s.View,
		liveOf(s)); err != nil {
		return err
	}
	if err := o.table(w, []status.Job{s}, true); err != nil {
		return err
	}
	if err := printChecks(w, style, []status.Job{s}); err != nil {
		return err
	}
	if _, err := io.WriteString(w, deploymentLines(s)+warningLines(style, s)); err != nil {
		return err
	}
	if err := archiveLines(w, style, printed.Archive); err != nil {
		return err
	}
	if err := scheduleLines(w, style, printed.Schedule); err != nil {
		return err
	}
	return layersText(w, style, printed.Layers)
}

// deploymentLines says what becomes of the deployments that have not ended.
func deploymentLines(s status.Job) string {
	var b strings.Builder
	for _, d := range s.Deployments {
		fmt.Fprintf(&b, "\ndeployment %d of %s: %s", d.Deployment, d.Version, d.State)
		if d.ObserveUntil != nil {
			b.WriteString(", rollback window until " + render.Time(d.ObserveUntil))
		}
		if d.Message != "" {
			b.WriteString(": " + d.Message)
		}
		if d.Next != "" {
			b.WriteString("\nnext: " + d.Next)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// warningLines are about the database under the job.
func warningLines(style render.Style, s status.Job) string {
	var b strings.Builder
	for _, text := range s.Warnings {
		b.WriteString("\n" + style.Paint(render.Warn, "warning: ") + text + "\n")
	}
	return b.String()
}

// notReady is the error of a version that status --exit-code does not end with 0 for.
func notReady(s status.Job, v *status.Version) error {
	code := exitOf(s, v)
	if code == job.ExitOK {
		return nil
	}
	e := &codeError{Code: code, Cause: string(s.Job) + " has no version that could become ready"}
	if v != nil {
		e.Cause = fmt.Sprintf("%s %s is %s", s.Job, v.Version, v.Verdict)
		if v.Reason != "" {
			e.Cause += ": " + v.Reason
		}
	}
	return e
}

// exitOf is the exit code of status --exit-code. Unknown is never ready.
func exitOf(s status.Job, v *status.Version) job.ExitCode {
	switch {
	case v == nil:
		return job.ExitNotCaughtUp
	case v.ExitCode != nil && v.Phase.Ended():
		return job.ExitCode(*v.ExitCode)
	case v.Phase.Ended():
		return job.ExitUnhealthy
	case v.Verdict == job.Unhealthy && v.Incomplete:
		return job.ExitGap
	case v.Verdict == job.Unhealthy:
		return cmp.Or(outcomeOf(s, v), job.ExitUnhealthy) // a gap has its own
	case v.Verdict == job.Ready && !v.Paused && outcomeOf(s, v) == job.ExitConflict:
		return job.ExitConflict
	case v.Verdict == job.Ready && !v.Paused:
		return job.ExitOK
	}
	return job.ExitNotCaughtUp
}

// outcomeOf is the exit code of the deployments of a version that have not ended, ExitOK when they have none.
func outcomeOf(s status.Job, v *status.Version) job.ExitCode {
	for _, d := range s.Deployments {
		if d.Version == v.Version && d.ExitCode != nil {
			return job.ExitCode(*d.ExitCode)
		}
	}
	return job.ExitOK
}

func liveOf(s status.Job) string {
	if s.Live == nil {
		return "nothing live"
	}
	return *s.Live
}
