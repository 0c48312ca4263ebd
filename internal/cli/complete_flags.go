package cli

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kappactl/kappactl/internal/kafka"
)

// completeFlags gives flags with a fixed list of values that list, --context the contexts and --topic the topics.
func (a *app) completeFlags(cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if cmd.HasParent() && cmd.Parent().PersistentFlags().Lookup(f.Name) == f {
			return
		}
		if c, ok := f.Value.(*choice); ok {
			complete(cmd, f.Name, func(*cobra.Command) []string { return c.of })
		}
		switch f.Name {
		case "config", "file":
			fromFiles(cmd, f.Name, []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt)
		case "data", "dir", "report", "postgres-bin", "temp":
			fromFiles(cmd, f.Name, nil, cobra.ShellCompDirectiveFilterDirs)
		case "context":
			complete(cmd, f.Name, a.contextNames)
		case "topic":
			complete(cmd, f.Name, func(cmd *cobra.Command) []string { return a.within(cmd, a.topicNames) })
		}
	})
	for _, c := range cmd.Commands() {
		a.completeFlags(c)
	}
}

func complete(cmd *cobra.Command, flag string, values func(*cobra.Command) []string) {
	// It fails for a flag that does not exist or has a function already, and these exist and have none.
	_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, _ string) ([]string,
		cobra.ShellCompDirective,
	) {
		return values(cmd), cobra.ShellCompDirectiveNoFileComp
	})
}

// fromFiles completes a flag from the file system.
func fromFiles(cmd *cobra.Command, flag string, kinds []string, directive cobra.ShellCompDirective) {
	// It fails for a flag that does not exist or has a function already, and these exist and have none.
	_ = cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return kinds, directive
	})
}

// within returns what find returns within the time that completion may take. On any error it returns nothing.
func (a *app) within(cmd *cobra.Command, find func(context.Context, *cobra.Command) []string) []string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), completeIn)
	defer cancel()
	found := make(chan []string, 1)
	go func() { found <- find(ctx, cmd) }()
	select {
	case out := <-found:
		return out
	case <-ctx.Done():
		return nil // the process ends right after this
	}
}

func (a *app) topicNames(ctx context.Context, cmd *cobra.Command) []string {
	a.flags.given = givenTo(cmd) // those seen before are of the hidden command that completes
	settings, err := a.settings()
	if err != nil {
		return nil
	}
	k, err := kafkaConfig(ctx, settings)
	if err != nil {
		return nil
	}
	admin, err := kafka.NewAdmin(k)
	if err != nil {
		return nil
	}
	defer admin.Close()
	names, err := admin.Names(ctx)
	if err != nil {
		return nil
	}
	return names
}
