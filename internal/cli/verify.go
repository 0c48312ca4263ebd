package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/internal/spill"
	"github.com/kappactl/kappactl/internal/verify"
)

type verifyOptions struct {
	*app
	target       target
	fromLogStart bool
	from         string
}

func newVerify(a *app, run func(context.Context, verifyOptions) error) *cobra.Command {
	o := verifyOptions{app: a}
	cmd := &cobra.Command{
		Use:   "verify JOB [VERSION]",
		Short: "Recompute a version from the log in one pass and compare it with what is served",
		Long: `Read the log once, up to the positions of the version, with the job's query as the file has it, and compare the
result with the version's rows of that moment. Equal ends with 0, differences with 5 and ten examples. Without VERSION it is the live
version. It needs no agent.`,
		Example:     "  kappactl verify pageviews\n  kappactl verify pageviews v2 --from-log-start",
		Args:        between([]string{"JOB"}, []string{"VERSION"}),
		Annotations: map[string]string{timeoutKey: noTimeout},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.target, err = parseTarget(cmd, args); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.fromLogStart, "from-log-start", false,
		"when the log starts later: compare only keys that lie after it")
	cmd.Flags().StringVar(&o.from, "from", "",
		"where records are read: archive (what it holds, else the log), log, or auto (default: where the job's replay reads them)")
	return cmd
}

// source is where records are read; empty: not given.
func (o verifyOptions) source() (job.ReplaySource, error) {
	switch s := job.ReplaySource(o.from); s {
	case "", job.SourceAuto, job.SourceLog, job.SourceArchive:
		return s, nil
	default:
		return "", &job.Refusal{
			Code: job.ExitUsage, Cause: fmt.Sprintf("--from %s is not a source", o.from),
			Next: "kappactl verify JOB --from archive, log or auto",
		}
	}
}

func runVerify(ctx context.Context, o verifyOptions) (err error) {
	from, err := o.source()
	if err != nil {
		return err
	}
	c, err := o.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	ref, err := o.version(ctx, c)
	if err != nil {
		return err
	}
	if ref.Adopted() {
		return &job.Refusal{
			Code: job.ExitConflict, Cause: fmt.Sprintf("%s %s was adopted: it was not computed from the log", ref.Job,
				ref.Number),
			Next: fmt.Sprintf("kappactl verify %s VERSION, of a version that a deploy made; kappactl diff %[1]s compares v0 with it", ref.Job),
		}
	}
	if err := c.noOracle(ctx, ref); err != nil {
		return err
	}
	brokers, err := kafkaConfig(ctx, c.settings)
	if err != nil {
		return err
	}
	admin, err := kafka.NewAdmin(brokers)
	if err != nil {
		return err
	}
	defer admin.Close()
	spilled, err := spill.NewFolder(c.settings.Agent.Temp)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, spilled.Close()) }()
	o.progress("reading the log of %s %s …", ref.Job, ref.Number)
	report, err := verify.Run(ctx, verify.Deps{
		Pool: c.pool, Kafka: brokers, Admin: admin, Views: views(), Temp: spilled.Path, Memory: c.settings.Agent.Memory,
		Log: o.log(), Now: o.sys.Now,
	}, ref, verify.Options{FromLogStart: o.fromLogStart, From: from})
	if err != nil {
		return err
	}
	return o.report(ctx, ref, report)
}

// version is the one asked for, else the live one.
func (o verifyOptions) version(ctx context.Context, c *client) (job.Ref, error) {
	status, err := c.store.Status(ctx, o.target.Job)
	if err != nil {
		return job.Ref{}, err
	}
	if o.target.Number != nil {
		_, err := versionOf(status, *o.target.Number)
		return job.Ref{Job: o.target.Job, Number: *o.target.Number}, err
	}
	if status.Live == nil {
		return job.Ref{}, &job.Refusal{
			Code: job.ExitUsage, Cause: fmt.Sprintf("job %q has no live version; name one", o.target.Job),
			Next: "kappactl status " + string(o.target.Job),
		}
	}
	n, err := job.ParseNumber(*status.Live)
	return job.Ref{Job: o.target.Job, Number: n}, err
}

// report prints what was found; differences end with 5.
func (o verifyOptions) report(ctx context.Context, ref job.Ref, r verify.Report) error {
	if r.Equal {
		return o.result(r, func(w io.Writer) error {
			text := fmt.Sprintf("%s %s is equal to its log: %s from %s in %s", ref.Job, ref.Number, render.Plural(r.Rows, "row"),
				render.Plural(r.Records, "record"), render.Duration(time.Duration(r.Seconds*float64(time.Second))))
			if r.DeadLetters > 0 {
				text += ", " + render.Plural(r.DeadLetters, "dead letter")
			}
			if r.Skipped > 0 {
				text += fmt.Sprintf("; %s not compared: their records are partly below the log start",
					render.Plural(r.Skipped, "row"))
			}
			_, err := fmt.Fprintln(w, text)
			return err
		})
	}
	return o.outcome(ctx, r, func(w io.Writer) error {
		for _, e := range r.Examples {
			if _, err := fmt.Fprintln(w, e); err != nil {
				return err
			}
		}
		return nil
	}, &job.Refusal{
		Code: job.ExitChecks, Cause: fmt.Sprintf("%s %s differs from its log: %s over %s", ref.Job, ref.Number,
			render.Plural(r.Differences, "difference"), render.Plural(r.Rows, "row")),
		Next: "kappactl status " + string(ref.Job),
	})
}
