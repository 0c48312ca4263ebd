package cli

import (
	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/reprocess/ledger"
)

// actOptions are what every act on one version takes.
type actOptions struct {
	*app
	target    target
	dryRun    bool
	waitAgent duration
}

// command adds the arguments JOB [VERSION] and the flags to cmd; run is called with the target read.
func (o *actOptions) command(cmd *cobra.Command, run func(*cobra.Command) error) *cobra.Command {
	cmd.Args = between([]string{"JOB"}, []string{"VERSION"})
	cmd.RunE = o.target.then(run)
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "let an agent try it and roll it back; print what would be done")
	waitAgentFlag(cmd.Flags(), &o.waitAgent)
	return cmd
}

func (o actOptions) act(verb ledger.Verb) act {
	return act{app: o.app, verb: verb, target: o.target, dryRun: o.dryRun, waitAgent: o.waitAgent.value}
}
