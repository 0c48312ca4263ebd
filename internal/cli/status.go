package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/agent"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess"
)

type statusOptions struct {
	*app
	target   *target // nil: every job
	exitCode bool
}

func newStatus(a *app, run func(context.Context, statusOptions) error) *cobra.Command {
	o := statusOptions{app: a}
	cmd := &cobra.Command{
		Use:   "status [JOB [VERSION]]",
		Short: "Show jobs, their versions and how far each is",
		Long: `Show each version's phase, lag, rate and verdict with its reason; with JOB also its partitions. What is not known prints
as "-" and as null in JSON. With --exit-code it ends with 0 when the version asked for (without VERSION: the newest candidate,
else the live one) is ready, 3 when it is not caught up, 7 when data is missing, and 8 when it is unhealthy.`,
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
	cmd.Flags().BoolVar(&o.exitCode, "exit-code", false, "say with the exit code whether it is ready")
	return cmd
}

func versionOf(s reprocess.Status, n job.Number) (*reprocess.VersionStatus, error) {
	for i := range s.Versions {
		if s.Versions[i].Version == n.String() {
			return &s.Versions[i], nil
		}
	}
	return nil, &job.Refusal{
		Code: job.ExitUsage, Cause: fmt.Sprintf("job %q has no version %s", s.Job, n), Next: "kappactl status " + string(s.Job),
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
		return o.result(jobs, func(w io.Writer) error { return o.all(w, jobs) })
	}
	status := jobs[0]
	var asked *reprocess.VersionStatus
	if o.target.Number != nil {
		if asked, err = versionOf(status, *o.target.Number); err != nil {
			return err
		}
		status.Versions = []reprocess.VersionStatus{*asked}
	}
	if err := o.result(status, func(w io.Writer) error { return o.one(w, status) }); err != nil {
		return err
	}
	if !o.exitCode {
		return nil
	}
	if asked == nil {
		asked = mainVersion(status)
	}
	return exitWith(readiness(status, asked))
}

// remark says on the error stream what is wrong with the agents: without one, what is shown stands still.
func (o statusOptions) remark(ctx context.Context, c *client, jobs []reprocess.Status) {
	living, err := agent.Roster(ctx, c.pool, aliveWithin)
	switch apart := unlike(living); {
	case err != nil:
		o.log().Debug("agents are not known", "error", err)
	case len(living) == 0 && len(jobs) > 0:
		o.progress("warning: no agent is alive: nothing goes on, and this is how the last one left it; next: kappactl serve")
	case len(apart) > 0:
		o.progress("warning: agents have different hooks: %s; next: %s", strings.Join(apart, "; "), sameHooks)
	}
}

func (o statusOptions) all(w io.Writer, jobs []reprocess.Status) error {
	if len(jobs) == 0 && o.style().People {
		_, err := fmt.Fprintln(w, "no job yet\nnext: kappactl deploy FILE")
		return err
	}
	return printStatuses(w, o.style(), jobs, false)
}

func (o statusOptions) one(w io.Writer, s reprocess.Status) error {
	style := o.style()
	if !style.People {
		return printStatuses(w, style, []reprocess.Status{s}, false)
	}
	if _, err := fmt.Fprintf(w, "%s  view %s  live %s\n\n", style.Paint(render.Strong, string(s.Job)), s.View, liveOf(s)); err != nil {
		return err
	}
	if err := printStatuses(w, style, []reprocess.Status{s}, true); err != nil {
		return err
	}
	if err := printChecks(w, style, []reprocess.Status{s}); err != nil {
		return err
	}
	_, err := io.WriteString(w, deploymentLines(s)+warningLines(style, s))
	return err
}

// deploymentLines says what becomes of the deployments that have not ended.
func deploymentLines(s reprocess.Status) string {
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
func warningLines(style render.Style, s reprocess.Status) string {
	var b strings.Builder
	for _, text := range s.Warnings {
		b.WriteString("\n" + style.Paint(render.Warn, "warning: ") + text + "\n")
	}
	return b.String()
}

// mainVersion is the one that a question about a job is about: the newest candidate, else the live one; nil when the
// job has neither.
func mainVersion(s reprocess.Status) *reprocess.VersionStatus {
	var candidate, live *reprocess.VersionStatus
	newest := job.Number(0)
	for i := range s.Versions {
		v := &s.Versions[i]
		n, err := job.ParseNumber(v.Version)
		switch {
		case err != nil || v.Phase.Ended() || v.Phase == job.Standby || v.Phase == job.Retiring:
		case v.Phase == job.Live:
			live = v
		case n > newest:
			candidate, newest = v, n
		}
	}
	if candidate != nil {
		return candidate
	}
	return live
}

// readiness is the exit code of status --exit-code. Unknown is never ready.
func readiness(s reprocess.Status, v *reprocess.VersionStatus) job.ExitCode {
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
		for _, d := range s.Deployments {
			if d.Version == v.Version && d.ExitCode != nil {
				return job.ExitCode(*d.ExitCode) // a gap has its own
			}
		}
		return job.ExitUnhealthy
	case v.Verdict == job.Ready && !v.Paused:
		return job.ExitOK
	}
	return job.ExitNotCaughtUp
}
