package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/lookup"
	"github.com/kappactl/kappactl/internal/pg"
)

// completeIn is all the time that completing a word may take. A shell that hangs is worse than one that completes
// nothing.
const completeIn = 300 * time.Millisecond

// completeTargets gives every command that takes a JOB its jobs and versions to complete, those that take a FILE the
// files that can be one, and those that take a DIR folders.
func (a *app) completeTargets(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		a.completeTargets(cmd)
		_, names, _ := strings.Cut(cmd.Use, " ")
		if cmd.ValidArgsFunction != nil || len(cmd.ValidArgs) > 0 {
			continue
		}
		switch first := strings.Trim(names, "["); {
		case strings.HasPrefix(first, "JOB"):
			cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
				versions := strings.Contains(names, "VERSION") || strings.Contains(names, "A B")
				return a.complete(cmd, args, versions), cobra.ShellCompDirectiveNoFileComp
			}
		case strings.HasPrefix(first, "FILE"):
			kinds := []string{"yaml", "yml"}
			if cmd.Name() == "load" {
				kinds = []string{"parquet", "csv", "ndjson", "jsonl", "json"}
			}
			cmd.ValidArgsFunction = onlyFirst(kinds, cobra.ShellCompDirectiveFilterFileExt)
			if strings.HasPrefix(first, "FILE...") {
				cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
					return kinds, cobra.ShellCompDirectiveFilterFileExt
				}
			}
		case strings.HasPrefix(first, "DIR"):
			cmd.ValidArgsFunction = onlyFirst(nil, cobra.ShellCompDirectiveFilterDirs)
		default:
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
	}
}

// onlyFirst completes the first argument from the file system, and none after it.
func onlyFirst(kinds []string, directive cobra.ShellCompDirective) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return kinds, directive
	}
}

// ofThePast are the commands that are also about versions that have ended.
func ofThePast(cmd *cobra.Command) bool {
	return slices.Contains([]string{"status", "history", "report", "wait", "list", "show", "retry"}, cmd.Name())
}

// queried completes the job of query, then COLUMN= for the columns of its view that have no value yet.
func (a *app) queried(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return a.complete(cmd, args, false), cobra.ShellCompDirectiveNoFileComp
	}
	columns := a.within(cmd, func(ctx context.Context, cmd *cobra.Command) []string { return a.columnsOf(ctx, cmd, args) })
	return columns, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// columnsOf lists the columns of the view of the job args[0] as NAME=, without those in the rest of args.
func (a *app) columnsOf(ctx context.Context, cmd *cobra.Command, args []string) []string {
	a.flags.given = givenTo(cmd) // those seen before are of the hidden command that completes
	c, err := a.client(ctx)
	if err != nil {
		return nil
	}
	defer c.Close()
	status, err := c.store.Status(ctx, job.Name(args[0]))
	if err != nil {
		return nil
	}
	view, err := job.ParseViewName(quotedView(status.View))
	if err != nil {
		return nil
	}
	var out []string
	err = c.pool.ReadOnly(ctx, func(tx *pg.Tx) error {
		columns, err := lookup.Columns(ctx, tx, view)
		for _, column := range columns {
			given := slices.ContainsFunc(args[1:], func(arg string) bool { return strings.HasPrefix(arg, column.Name+"=") })
			if !given {
				out = append(out, column.Name+"=\t"+column.Type)
			}
		}
		return err
	})
	if err != nil {
		return nil
	}
	return out
}

// complete lists jobs for the first argument and versions for those after it. On any error it returns nothing.
func (a *app) complete(cmd *cobra.Command, args []string, versions bool) []string {
	return a.within(cmd, func(ctx context.Context,
		cmd *cobra.Command,
	) []string {
		return a.targets(ctx, cmd, args, versions)
	})
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
		if !v.Phase.Ended() || ofThePast(cmd) {
			out = append(out, v.Version+"\t"+string(v.Phase))
		}
	}
	return out
}
