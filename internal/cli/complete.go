package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/job"
)

// completeIn is all the time that completing a word may take. A shell that hangs is worse than one that completes nothing.
const completeIn = 300 * time.Millisecond

// completeTargets gives every command that takes a JOB its jobs and versions to complete, and those that take a FILE files.
func (a *app) completeTargets(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		a.completeTargets(cmd)
		_, names, _ := strings.Cut(cmd.Use, " ")
		if cmd.ValidArgsFunction != nil || len(cmd.ValidArgs) > 0 || !strings.HasPrefix(strings.Trim(names, "["), "JOB") {
			continue
		}
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			versions := strings.Contains(names, "VERSION") || strings.Contains(names, "A B")
			return a.complete(cmd, args, versions), cobra.ShellCompDirectiveNoFileComp
		}
	}
}

// complete lists jobs for the first argument and versions for those after it. Whatever goes wrong, it says nothing.
func (a *app) complete(cmd *cobra.Command, args []string, versions bool) []string {
	return a.within(cmd, func(ctx context.Context, cmd *cobra.Command) []string { return a.targets(ctx, cmd, args, versions) })
}

func (a *app) targets(ctx context.Context, cmd *cobra.Command, args []string, versions bool) []string {
	a.flags.given = givenTo(cmd) // those seen before are of the hidden command that completes
	c, err := a.client(ctx)
	if err != nil {
		return nil
	}
	defer c.Close()
	var out []string
	if len(args) == 0 {
		jobs, err := c.store.Jobs(ctx)
		if err != nil {
			return nil
		}
		for _, j := range jobs {
			out = append(out, string(j.Job)+"\t"+j.View)
		}
		return out
	}
	if !versions {
		return nil
	}
	status, err := c.store.Status(ctx, job.Name(args[0]))
	if err != nil {
		return nil
	}
	for _, v := range status.Versions {
		out = append(out, v.Version+"\t"+string(v.Phase))
	}
	return out
}
