package cli

import (
	"context"

	"github.com/spf13/cobra"
)

type devOptions struct {
	*app
	data        string
	postgresBin string
	http        string
}

func newDev(a *app, run func(context.Context, devOptions) error) *cobra.Command {
	o := devOptions{app: a}
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a local Kafka, PostgreSQL and agent, with the data kept in a folder",
		Long: `Start an in-process Kafka (for local use only), a PostgreSQL from the installed server binaries, and an agent, and run until
interrupted. When all is up, one line on the output says where:

  ready config=DIR/kappactl.yaml brokers=HOST:PORT dsn=postgres://… http=HOST:PORT

That config file makes every other command work, with --config or KAPPACTL_CONFIG. A second start on the same folder finds everything
again. --brokers and --dsn use existing servers in place of the embedded ones.`,
		Example:     "  kappactl dev --data ./dev\n  export KAPPACTL_CONFIG=./dev/kappactl.yaml",
		Args:        exactly(),
		Annotations: map[string]string{timeoutKey: noTimeout},
		RunE:        func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.data, "data", "kappactl-dev", "`FOLDER` that keeps topics and tables")
	f.StringVar(&o.postgresBin, "postgres-bin", "", "`FOLDER` of the PostgreSQL server binaries (default: found by itself)")
	f.StringVar(&o.http, "http", "127.0.0.1:0", "`ADDRESS` of the HTTP server; port 0 takes a free one")
	return cmd
}
