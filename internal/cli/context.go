package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/config"
	"github.com/kappactl/kappactl/internal/render"
)

// newContext holds the commands about the settings file and its contexts.
func newContext(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "context",
		Short: "Look at the settings and choose a context",
		Long: `Look at the contexts of the settings file, choose the one that commands use, and see where each setting comes from. It
opens no connection.`,
		Example: "  kappactl context list\n  kappactl context show",
	}
	asGroup(cmd)
	cmd.AddCommand(newContextList(a, runContextList), newContextUse(a, runContextUse), newContextShow(a, runContextShow))
	return cmd
}

type contextOptions struct {
	*app
	name string
}

func newContextList(a *app, run func(context.Context, contextOptions) error) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the contexts of the settings file",
		Long:    "List the contexts of the settings file by name. The one that commands use now, by --context, KAPPACTL_CONTEXT or the file's key current, is marked.",
		Example: "  kappactl context list\n  kappactl context list -o json",
		Args:    exactly(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), contextOptions{app: a}) },
	}
}

func newContextUse(a *app, run func(context.Context, contextOptions) error) *cobra.Command {
	o := contextOptions{app: a}
	cmd := &cobra.Command{
		Use:   "use NAME",
		Short: "Make a context the current one of the settings file",
		Long: `Write the key current of the settings file. Other keys and all comments stay; blank lines and indents may change. Readers
see the old file or the whole new one.`,
		Example: "  kappactl context use prod",
		Args:    exactly("NAME"),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return a.contextNames(cmd), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			return run(cmd.Context(), o)
		},
	}
	return cmd
}

func newContextShow(a *app, run func(context.Context, contextOptions) error) *cobra.Command {
	return &cobra.Command{
		Use:   "show",
		Short: "Print every setting, its value, and where it comes from",
		Long: `Print every setting as commands see it now: its value, with *** in place of a secret, and what set it: a flag, a variable, a
line of the settings file, or the default.`,
		Example: "  kappactl context show\n  kappactl context show --context prod -o json",
		Args:    exactly(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), contextOptions{app: a}) },
	}
}

// surroundings are the places where settings are looked up.
func (a *app) surroundings() config.Env {
	e := config.System()
	e.Getenv = a.sys.Env
	return e
}

// contextNames completes contexts. Whatever goes wrong, it says nothing.
func (a *app) contextNames(cmd *cobra.Command) []string {
	all, err := config.Contexts(givenTo(cmd), a.surroundings())
	if err != nil {
		return nil
	}
	var names []string
	for _, c := range all {
		names = append(names, c.Name+"\t"+strings.Join(c.Brokers, ","))
	}
	return names
}

// givenTo are the flags that a command line gave, for completion, which runs no command.
func givenTo(cmd *cobra.Command) config.Flags {
	given := config.Flags{}
	cmd.Flags().Visit(keep(given))
	return given
}

func runContextList(_ context.Context, o contextOptions) error {
	all, err := config.Contexts(o.flags.given, o.surroundings())
	if err != nil {
		return err
	}
	return o.result(all, func(w io.Writer) error {
		t := render.NewTable("current", "name", "brokers", "dsn", "schema")
		for _, c := range all {
			mark := ""
			if c.Current {
				mark = "*"
			}
			t.Add(render.Toned(render.Good, mark), render.Text(c.Name), render.Text(cmp.Or(strings.Join(c.Brokers, ","), "-")),
				render.Text(cmp.Or(c.DSN, "-")), render.Text(c.Schema))
		}
		return t.Write(w, o.style())
	})
}

// contextUsed is the output of context use.
type contextUsed struct {
	Context string `json:"context"`
	Before  string `json:"before"` // empty: none was
	File    string `json:"file"`
	Changed bool   `json:"changed"`
	Message string `json:"message"`
}

func runContextUse(_ context.Context, o contextOptions) error {
	path, before, err := config.UseContext(o.flags.given, o.surroundings(), o.name)
	if err != nil {
		return err
	}
	r := contextUsed{Context: o.name, Before: before, File: path, Changed: before != o.name}
	switch {
	case !r.Changed:
		r.Message = fmt.Sprintf("%s is the current context of %s already", o.name, path)
	default:
		r.Message = fmt.Sprintf("%s is the current context of %s", o.name, path)
	}
	if named := o.sys.Env("KAPPACTL_CONTEXT"); named != "" && named != o.name {
		o.progress("warning: KAPPACTL_CONTEXT is %s and overrides the file", named)
	}
	return o.result(r, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, r.Message)
		return err
	})
}

func runContextShow(_ context.Context, o contextOptions) error {
	s, err := o.settings()
	if err != nil {
		return err
	}
	shown := s.Show()
	return o.result(shown, func(w io.Writer) error {
		t := render.NewTable("setting", "value", "origin")
		for _, one := range shown {
			t.Add(render.Text(one.Name), render.Text(known(one.Value)), render.Toned(render.Dim, one.Origin))
		}
		return t.Write(w, o.style())
	})
}
