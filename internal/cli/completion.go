package cli

import (
	"github.com/spf13/cobra"
)

type completionOptions struct{ shell string }

func newCompletion(a *app, run func(*cobra.Command, *app, completionOptions) error) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	cmd := &cobra.Command{
		Use:       "completion SHELL",
		Short:     "Print the completion script of a shell",
		Long:      "Print the completion script of bash, zsh, fish or powershell. It opens no connection.",
		Example:   "  source <(kappactl completion bash)",
		ValidArgs: shells,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := exactly("SHELL")(cmd, args); err != nil {
				return err
			}
			if err := cobra.OnlyValidArgs(cmd, args); err != nil {
				return usage(cmd, "unknown shell %q: want bash, zsh, fish or powershell", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd, a, completionOptions{shell: args[0]})
		},
	}
	return cmd
}

func runCompletion(cmd *cobra.Command, a *app, o completionOptions) error {
	root := cmd.Root()
	switch o.shell {
	case "bash":
		return root.GenBashCompletionV2(a.sys.Out, true)
	case "zsh":
		return root.GenZshCompletion(a.sys.Out)
	case "fish":
		return root.GenFishCompletion(a.sys.Out, true)
	default:
		return root.GenPowerShellCompletionWithDesc(a.sys.Out)
	}
}
