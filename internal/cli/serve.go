package cli

import (
	"context"

	"github.com/spf13/cobra"
)

type serveOptions struct{ *app }

func newServe(a *app, run func(context.Context, serveOptions) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run an agent: it hosts the work of all versions until it is told to stop",
		Long: `Run an agent until SIGTERM or Ctrl-C: it then finishes the commits in hand and releases its claims, so that another agent
takes over within a second, and ends with exit code 0. Any number of agents share the work; any of them may be killed at any moment. It
also answers /healthz, /readyz and /metrics over HTTP, on the loopback interface unless told otherwise.`,
		Example:     "  kappactl serve --http 127.0.0.1:8080",
		Args:        exactly(),
		Annotations: map[string]string{timeoutKey: noTimeout},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return run(cmd.Context(), serveOptions{a})
		},
	}
	settingFlags(cmd.Flags(), true)
	return cmd
}
