package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// document writes the reference page of one command in Markdown. The pages in docs/cli are made by it.
func document(cmd *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s.\n", cmd.CommandPath(), cmd.Short)
	if cmd.Long != "" {
		fmt.Fprintf(&b, "\n%s\n", cmd.Long)
	}
	fmt.Fprintf(&b, "\n```\n%s\n```\n", cmd.UseLine())
	if cmd.Example != "" {
		fmt.Fprintf(&b, "\n## Examples\n\n```\n%s\n```\n", dedent(cmd.Example))
	}
	if len(visible(cmd)) > 0 {
		b.WriteString("\n## Commands\n")
		for _, g := range append([]*cobra.Group{{}}, cmd.Groups()...) {
			commandTable(&b, g, visible(cmd))
		}
	}
	flagTable(&b, "Flags", cmd.NonInheritedFlags())
	flagTable(&b, "Flags of every command", cmd.InheritedFlags())
	if _, grouped := cmd.Annotations[timeoutKey]; cmd.HasParent() && cmd.Runnable() {
		limit := "30s"
		if grouped {
			limit = cmd.Annotations[timeoutKey]
		}
		if limit == noTimeout {
			limit = "none"
		}
		fmt.Fprintf(&b, "\nDefault of `--timeout`: %s. Exit codes: [exit-codes.md](../exit-codes.md).\n", limit)
	}
	return b.String()
}

// commandTable lists the commands of one group; those without a group belong to the empty one.
func commandTable(b *strings.Builder, g *cobra.Group, all []*cobra.Command) {
	begun := false
	for _, c := range all {
		if c.GroupID != g.ID {
			continue
		}
		if !begun {
			if g.Title != "" {
				fmt.Fprintf(b, "\n### %s\n", strings.TrimSuffix(g.Title, ":"))
			}
			b.WriteString("\n| command | does |\n| --- | --- |\n")
			begun = true
		}
		fmt.Fprintf(b, "| [%s](%s) | %s |\n", c.CommandPath(), page(c), c.Short)
	}
}

// page is the file name of a command's reference page.
func page(cmd *cobra.Command) string {
	return strings.ReplaceAll(cmd.CommandPath(), " ", "_") + ".md"
}

// visible lists the commands below cmd that help shows.
func visible(cmd *cobra.Command) []*cobra.Command {
	var out []*cobra.Command
	for _, c := range cmd.Commands() {
		if !c.Hidden && c.Name() != "help" {
			out = append(out, c)
		}
	}
	return out
}

func flagTable(b *strings.Builder, title string, flags *pflag.FlagSet) {
	var rows []string
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name := "`--" + f.Name
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		kind, text := pflag.UnquoteUsage(f)
		if kind != "" {
			name += " " + kind
		}
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0" {
			text += " (default " + f.DefValue + ")"
		}
		rows = append(rows, fmt.Sprintf("| %s` | %s |\n", strings.ReplaceAll(name, "|", `\|`),
			strings.ReplaceAll(text, "|", `\|`)))
	})
	if len(rows) > 0 {
		fmt.Fprintf(b, "\n## %s\n\n| flag | |\n| --- | --- |\n%s", title, strings.Join(rows, ""))
	}
}

func dedent(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return strings.Join(lines, "\n")
}
