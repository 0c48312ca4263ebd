package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/docs"
	"github.com/kappactl/kappactl/internal/config"
	"github.com/kappactl/kappactl/internal/job/strict"
	"github.com/kappactl/kappactl/internal/render"
)

// helpTopic is a page of help that is about no command.
type helpTopic struct {
	name  string
	short string
	file  string // in docs; empty: the topic is environment
}

func helpTopics() []helpTopic {
	return []helpTopic{
		{"exit-codes", "with which codes commands end, and why", "exit-codes.md"},
		{"environment", "variables that commands read", ""},
		{"settings", "the settings file: where it is looked for, and its keys", "settings.md"},
		{"output", "what commands print with --output, field by field", "cli-output.md"},
		{"hooks", "commands and webhooks that are told of deployments", "hooks.md"},
		{"job-file", "the keys of the job file", "job-file.md"},
		{"queries", "what the query of a job may do", "queries.md"},
	}
}

// newHelp is cobra's help command with topics, except that an unknown one is an error.
func newHelp(a *app) *cobra.Command {
	long := "Show the help of a command, or a page about:\n"
	for _, t := range helpTopics() {
		long += fmt.Sprintf("\n  %-12s  %s", t.name, t.short)
	}
	return &cobra.Command{
		Use:     "help [COMMAND | TOPIC]",
		Short:   "Show the help of a command, or a page about exit codes, the environment and more",
		Long:    long,
		Example: "  kappactl help deploy\n  kappactl help exit-codes",
		Args:    cobra.ArbitraryArgs,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return helpNames(cmd.Root(), args), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if i := slices.IndexFunc(helpTopics(), func(t helpTopic) bool {
				return len(args) == 1 &&
					t.name == args[0]
			}); i >= 0 {
				return a.topic(helpTopics()[i])
			}
			topic, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownTopic(topic, rest[0])
			}
			topic.InitDefaultHelpFlag()
			return topic.Help()
		},
	}
}

// helpOf is show, but for words behind a group that are none of its commands, as in "kappactl statsu --help": a script
// must not take that for done.
func (a *app) helpOf(show func(*cobra.Command, []string)) func(*cobra.Command, []string) {
	return func(cmd *cobra.Command, args []string) {
		if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 {
			a.wrong = unknownCommand(cmd, words[0])
			return
		}
		cmd.Long = reflow(cmd.Long, a.sys.Width)
		show(cmd, args)
	}
}

// reflow breaks the paragraphs of a text again for a terminal of this width; 0 is unknown. Paragraphs with indented
// lines stay as they are.
func reflow(text string, width int) string {
	if width <= 0 || width > 100 {
		width = 100
	}
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if !strings.HasPrefix(p, " ") && !strings.Contains(p, "\n ") {
			paragraphs[i] = strings.Join(render.Wrap(strings.Join(strings.Fields(p), " "), max(40, width)), "\n")
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// unknownTopic suggests the nearest topic, else the nearest command.
func unknownTopic(at *cobra.Command, name string) error {
	var names []string
	for _, t := range helpTopics() {
		names = append(names, t.name)
	}
	if near := strict.Nearest(name, names); near != "" && !at.HasParent() {
		return &usageError{
			Cause: fmt.Sprintf("unknown topic %q", name), Usage: "kappactl help [COMMAND | TOPIC]", Next: "kappactl help " +
				near,
		}
	}
	return unknownCommand(at, name)
}

// helpNames completes the words of help: commands below those given, and topics.
func helpNames(root *cobra.Command, args []string) []string {
	at, rest, err := root.Find(args)
	if err != nil || len(rest) > 0 {
		return nil
	}
	var names []string
	for _, c := range visible(at) {
		names = append(names, c.Name()+"\t"+c.Short)
	}
	if len(args) == 0 {
		for _, t := range helpTopics() {
			names = append(names, t.name+"\t"+t.short)
		}
	}
	return names
}

func (a *app) topic(t helpTopic) error {
	if t.file == "" {
		return environmentHelp(a.sys.Out, a.style())
	}
	text, err := docs.Files.ReadFile(t.file)
	if err != nil {
		return err
	}
	_, err = io.WriteString(a.sys.Out, render.Markdown(string(text), a.style()))
	return err
}

// otherVariables are those that are no setting.
func otherVariables() [][2]string {
	return [][2]string{
		{"KAPPACTL_CONFIG", "settings file"},
		{"KAPPACTL_CONTEXT", "context of the settings file"},
		{outputVariable, "how results are printed (--output)"},
		{timeoutVariable, "give up after this time (--timeout); not for serve, dev and watch, which run until they are stopped"},
		{
			"PGHOST, PGDATABASE, PGSERVICE …",
			"libpq's variables: those that name a server replace the file's dsn, the others fill what it lacks",
		},
		{"PGPASSWORD, PGPASSFILE", "the database password"},
		{"KAPPACTL_WEBHOOK_SECRET", "of serve: signs webhooks that name no secret_file"},
		{"KAPPACTL_REPORT", "folder for the reports that deploy and wait write at their end (--report)"},
		{"NO_COLOR", "anything: no colours"},
		{"TERM", "dumb: no colours, and watch prints lines"},
		{"COLORFGBG", "the terminal's colours, for watch, when the terminal does not tell"},
		{"LC_ALL, LC_CTYPE, LANG", "without UTF-8 watch draws in ASCII"},
		{"USER, LOGNAME", "who acts, for the history"},
		{"XDG_CONFIG_HOME, HOME", "where the user's kappactl/kappactl.yaml is"},
		{"GOGC, GOMEMLIMIT", "of serve: go before what agent.memory implies"},
	}
}

func environmentHelp(w io.Writer, s render.Style) error {
	var b strings.Builder
	b.WriteString("# Environment\n\nA flag goes before its variable, a variable before the settings file; kappactl context show prints what counts.\n\n")
	b.WriteString("| variable | |\n| --- | --- |\n")
	for _, o := range config.Table() {
		if o.Env == "" {
			continue
		}
		text := o.Usage
		if o.Flag != "" {
			text += " (--" + o.Flag + ")"
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", o.Env, text)
	}
	for _, v := range otherVariables() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", v[0], v[1])
	}
	_, err := io.WriteString(w, render.Markdown(b.String(), s))
	return err
}
