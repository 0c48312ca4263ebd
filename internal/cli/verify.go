package cli

import (
	"context"

	"github.com/spf13/cobra"
)

type verifyOptions struct {
	*app
	target       target
	fromLogStart bool
}

func newVerify(a *app, run func(context.Context, verifyOptions) error) *cobra.Command {
	o := verifyOptions{app: a}
	cmd := &cobra.Command{
		Use:   "verify JOB [VERSION]",
		Short: "Recompute a version from the log in one pass and compare it with what is served",
		Long: `Read the log once, up to the positions of the version, with the job's query as it stands in the file, and compare the
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
	cmd.Flags().BoolVar(&o.fromLogStart, "from-log-start", false, "when the log starts later: compare only keys that lie after it")
	return cmd
}
