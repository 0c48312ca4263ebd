package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

type pinOptions struct {
	*app
	target target
	pinned bool
}

func newPin(a *app, run func(context.Context, pinOptions) error) *cobra.Command {
	return pinCommand(pinOptions{app: a, pinned: true}, run, &cobra.Command{
		Use:   "pin JOB [VERSION]",
		Short: "Keep a version from being retired",
		Long: `Keep a version, and with it the way back to it, beyond its rollback window: neither retire nor the end of keep_old takes it
away until unpin. It goes on consuming, and costs that much. Without VERSION it is the standby one.`,
		Example: "  kappactl pin pageviews v1",
	})
}

func newUnpin(a *app, run func(context.Context, pinOptions) error) *cobra.Command {
	return pinCommand(pinOptions{app: a}, run, &cobra.Command{
		Use:     "unpin JOB [VERSION]",
		Short:   "Let a pinned version be retired again",
		Long:    "Let a pinned version be retired again, by retire or when its rollback window ends. Without VERSION it is the standby one.",
		Example: "  kappactl unpin pageviews v1",
	})
}

func pinCommand(o pinOptions, run func(context.Context, pinOptions) error, cmd *cobra.Command) *cobra.Command {
	cmd.Args = between([]string{"JOB"}, []string{"VERSION"})
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if o.target, err = parseTarget(cmd, args); err != nil {
			return err
		}
		return run(cmd.Context(), o)
	}
	return cmd
}

// pinResult is the output of pin and unpin.
type pinResult struct {
	Job     job.Name `json:"job"`
	Version string   `json:"version"`
	Pinned  bool     `json:"pinned"`
	Changed bool     `json:"changed"`
	Message string   `json:"message"`
}

// runPin needs no agent: agents read it when they look whether to retire.
func runPin(ctx context.Context, o pinOptions) error {
	c, err := o.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	ref, err := c.resolve(ctx, o.target, ledger.Retire)
	if err != nil {
		return err
	}
	r := pinResult{Job: ref.Job, Version: ref.Number.String(), Pinned: o.pinned}
	what := map[bool]string{true: "kept until it is unpinned", false: "retired when its rollback window ends"}[o.pinned]
	if r.Changed, err = c.store.Pin(ctx, ref, o.pinned, o.by()); err != nil {
		return err
	}
	already := map[bool]string{true: "", false: "already "}[r.Changed]
	r.Message = fmt.Sprintf("%s is %s%s", ref, already, what)
	return o.result(r, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, r.Message)
		return err
	})
}
