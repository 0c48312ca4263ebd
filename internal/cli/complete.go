package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/config"
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
	ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), completeIn)
	defer cancel()
	found := make(chan []string, 1)
	go func() { found <- a.targets(ctx, cmd, args, versions) }()
	select {
	case out := <-found:
		return out
	case <-ctx.Done():
		return nil // the process ends right after this
	}
}

func (a *app) targets(ctx context.Context, cmd *cobra.Command, args []string, versions bool) []string {
	if a.flags.given == nil {
		a.flags.given = config.Flags{}
		cmd.Flags().Visit(keep(a.flags.given))
	}
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
