package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kappactl/kappactl/docs"
	"github.com/kappactl/kappactl/internal/render"
)

type manOptions struct {
	*app
	dir  string
	root *cobra.Command
}

func newMan(a *app, run func(context.Context, manOptions) error) *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages of all commands into a folder",
		Long: `Write a manual page of each command into a folder, which is made when it is not there: kappactl.1, kappactl-deploy.1 and so
on. They come from the commands themselves, so that they are those of this build.`,
		Example: "  kappactl man /usr/local/share/man/man1\n  kappactl man ./man && man ./man/kappactl-deploy.1",
		Args:    exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd.Context(), manOptions{app: a, dir: args[0], root: cmd.Root()})
		},
	}
}

// manResult is the output of man.
type manResult struct {
	Dir   string   `json:"dir"`
	Pages []string `json:"pages"`
}

func runMan(_ context.Context, o manOptions) error {
	if err := os.MkdirAll(o.dir, 0o755); err != nil { //nolint:gosec // documents
		return err
	}
	r := manResult{Dir: o.dir}
	if err := o.write(o.root, &r); err != nil {
		return err
	}
	return o.result(r, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s in %s\n", render.Plural(int64(len(r.Pages)), "page"), r.Dir)
		return err
	})
}

func (o manOptions) write(cmd *cobra.Command, r *manResult) error {
	text, err := manual(cmd)
	if err != nil {
		return err
	}
	name := manName(cmd) + ".1"
	if err := os.WriteFile(filepath.Join(o.dir, name), []byte(text), 0o644); err != nil { //nolint:gosec // a document
		return err
	}
	r.Pages = append(r.Pages, name)
	for _, c := range visible(cmd) {
		if err := o.write(c, r); err != nil {
			return err
		}
	}
	return nil
}

func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manual is the manual page of a command, in the man macros of troff.
func manual(cmd *cobra.Command) (string, error) {
	cmd.InitDefaultHelpFlag()
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"kappactl %s\" \"kappactl manual\"\n", strings.ToUpper(manName(cmd)), troff(release))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", troff(manName(cmd)), troff(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", troff(cmd.UseLine()))
	b.WriteString(".SH DESCRIPTION\n")
	for paragraph := range strings.SplitSeq(cmp.Or(cmd.Long, cmd.Short+"."), "\n\n") {
		b.WriteString(".PP\n" + troff(paragraph) + "\n")
	}
	if own := visible(cmd); len(own) > 0 {
		b.WriteString(".SH COMMANDS\n")
		for _, c := range own {
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", troff(manName(c)+"(1)"), troff(c.Short))
		}
	}
	manFlags(&b, "OPTIONS", cmd.NonInheritedFlags())
	manFlags(&b, "OPTIONS OF EVERY COMMAND", cmd.InheritedFlags())
	fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", troff(dedent(cmd.Example)))
	codes, err := docs.Files.ReadFile("exit-codes.md")
	if err != nil {
		return "", err
	}
	b.WriteString(".SH EXIT STATUS\n")
	for _, row := range exitRows(string(codes)) {
		fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", troff(row[0]), troff(row[1]))
	}
	b.WriteString(".SH SEE ALSO\n")
	if cmd.HasParent() {
		fmt.Fprintf(&b, ".BR %s (1),\n", troff(manName(cmd.Parent())))
	}
	b.WriteString("kappactl help exit\\-codes, kappactl help environment\n")
	return b.String(), nil
}

// exitRows are code and meaning of the table in docs/exit-codes.md.
func exitRows(text string) [][2]string {
	var out [][2]string
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || strings.Trim(strings.TrimSpace(cells[1]), "0123456789") != "" ||
			strings.TrimSpace(cells[1]) == "" {
			continue
		}
		out = append(out, [2]string{strings.TrimSpace(cells[1]), strings.ReplaceAll(strings.TrimSpace(cells[2]), "`", "")})
	}
	return out
}

func manFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	begun := false
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		if !begun {
			fmt.Fprintf(b, ".SH %s\n", title)
			begun = true
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		kind, text := pflag.UnquoteUsage(f)
		if kind != "" {
			name += " " + kind
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", troff(name), troff(text))
	})
}

// troff makes text safe: hyphens that can be copied, no line that is taken for a command.
func troff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", "").Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
