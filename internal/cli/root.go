package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kappactl/kappactl/internal/config"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
)

// app is shared by all commands of one run.
type app struct {
	sys   System
	flags globals
	stop  context.CancelFunc // of the timeout
	wrong error              // of a command line that asks for help about a command that there is not
	state *state
}

// state changes while a command runs; copies of an app share it.
type state struct {
	failed bool     // the failure is printed for programs
	file   string   // the job file that is read
	job    job.Name // of it

	// Of one of several job files: the result in a few words, the variables that the file has, and its tests
	// or its part of a page.
	many      bool
	summary   string
	variables []string
	suite     *junitSuite
	section   string // of the page
}

// current returns what changes while the command runs.
func (a *app) current() *state {
	if a.state == nil {
		a.state = &state{}
	}
	return a.state
}

// globals are the flags that every command takes.
type globals struct {
	output  choice
	timeout duration
	quiet   bool
	noColor bool
	debug   bool
	yes     bool         // of commands that readers could notice
	given   config.Flags // those that are settings, as given
}

// Run runs one command line and returns its exit code.
func Run(ctx context.Context, sys System, args []string) job.ExitCode {
	a := &app{sys: sys, stop: func() {}, state: &state{}}
	root := newRoot(a)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	defer a.stop()
	if err == nil {
		err = a.wrong
	}
	if err == nil {
		return job.ExitOK
	}
	a.outputOf(args)
	return a.ends(cmd.Context(), cmd.CommandPath(), err).Code
}

// ends reports the error that the command at path ended with, on both streams. path is empty for one of several job
// files.
func (a *app) ends(ctx context.Context, path string, err error) failure {
	var done *codeError
	if errors.As(err, &done) {
		return explain(ctx, err)
	}
	err = a.namingRights(ctx, err)
	f := explain(ctx, err)
	if f.Next == "" && f.Code == job.ExitUsage && path != "" {
		f.Next = path + " --help"
	}
	f.File = a.current().file
	a.tell("%s", f)
	a.annotateFailure(f)
	a.fails(f)
	if a.flags.debug {
		for _, line := range chain(err) {
			a.tell("debug: %s\n", line)
		}
	}
	return f
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "kappactl",
		Short: "Ship new stream-processing code beside the old one, and flip to it",
		Long: `kappactl ships new stream-processing code the way a web team ships a web service: the new version of a
job replays history into its own table beside the old one, catches up, is compared, and takes over the view that
readers use in one transaction. The old version stays warm for a one-command rollback.`,
		Example: `  kappactl dev --data ./dev            # a local Kafka, PostgreSQL and agent
  kappactl deploy examples/pageviews.yaml
  kappactl status pageviews`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		PersistentPreRunE: a.begin,
	}
	asGroup(root)
	other := root.RunE
	version := root.Flags().Bool("version", false, "print what this build is")
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if *version && len(args) == 0 {
			return runVersion(cmd.Context(), versionOptions{a})
		}
		return other(cmd, args)
	}
	root.SetOut(a.sys.Out)
	root.SetErr(a.sys.Err)
	root.SetIn(a.sys.In)
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(wrongFlag)
	usages := strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages ",
		fmt.Sprintf(".FlagUsagesWrapped %d ", max(0, a.sys.Width)))
	root.SetUsageTemplate(strings.Replace(usages, "{{if .HasAvailableSubCommands}}\n  {{.CommandPath}} [command]",
		`{{if and .HasAvailableSubCommands (ne .UseLine (printf "%s COMMAND [flags]" .CommandPath))}}`+"\n  {{.CommandPath}} [command]", 1))
	a.globalFlags(root)
	for _, g := range commands(a) {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
		for _, c := range g.commands {
			c.GroupID = g.title
			root.AddCommand(c)
		}
	}
	a.completeTargets(root)
	a.completeFlags(root)
	root.SetHelpCommand(newHelp(a))
	root.SetHelpCommandGroupID(groupOthers)
	root.SetHelpFunc(a.helpOf(root.HelpFunc()))
	return root
}

func (a *app) globalFlags(root *cobra.Command) {
	a.flags.output = choice{value: "table", of: outputs(), also: []string{junitFormat, markdownFormat}}
	f := root.PersistentFlags()
	f.String("config", "", "settings `FILE` (default: KAPPACTL_CONFIG, ./kappactl.yaml, then the user's config folder)")
	f.String("context", "", "`NAME` of the context of the settings file to use")
	settingFlags(f, false)
	f.VarP(&a.flags.output, "output", "o", "how results are printed (also "+outputVariable+")")
	f.Var(&a.flags.timeout, "timeout",
		"give up after this time with exit code 4; 0 = never (default: see the command; also "+timeoutVariable+")")
	f.BoolVarP(&a.flags.quiet, "quiet", "q", false, "no progress on the error stream")
	f.BoolVar(&a.flags.noColor, "no-color", false, "no colours (also NO_COLOR)")
	f.BoolVar(&a.flags.debug, "debug", false, "log what is done, and all that an error wraps, on the error stream")
}

// defaultTimeout ends commands that say nothing else with the annotation timeoutKey.
const (
	defaultTimeout = 30 * time.Second
	timeoutKey     = "timeout"
	noTimeout      = "0s"
	// untilStoppedKey marks commands that run until they are stopped: a timeout meant for all commands does not end them.
	untilStoppedKey = "until-stopped"
	// outputKey is the value of --output that only this command takes.
	outputKey = "output"
)

// Variables that give flags of every command a default.
const (
	outputVariable  = "KAPPACTL_OUTPUT"
	timeoutVariable = "KAPPACTL_TIMEOUT"
)

// fromVariables takes the flags of every command that the command line does not give from their variables.
func (a *app) fromVariables(cmd *cobra.Command) error {
	for _, v := range []struct {
		flag, variable string
		to             pflag.Value
		skip           bool
	}{
		{"output", outputVariable, &a.flags.output, false},
		{"timeout", timeoutVariable, &a.flags.timeout, cmd.Annotations[untilStoppedKey] != ""},
	} {
		text := a.sys.Env(v.variable)
		if text == "" || v.skip || cmd.Flags().Changed(v.flag) {
			continue
		}
		if err := v.to.Set(text); err != nil {
			return usage(cmd, "%s: %q: %s", v.variable, text, err)
		}
	}
	return nil
}

// settingFlags adds a flag for each setting that has one: those of every command, or those of serve alone.
func settingFlags(f *pflag.FlagSet, serve bool) {
	for _, o := range config.Table() {
		if o.Flag != "" && o.Serve == serve {
			f.String(o.Flag, "", fmt.Sprintf("%s (also %s)", o.Usage, o.Env))
		}
	}
}

// csvCommands print rows. The results of others are single objects.
var csvCommands = []string{
	"kappactl status", "kappactl history", "kappactl query", "kappactl deadletter list", "kappactl context list",
	"kappactl context show",
	"kappactl archive list", "kappactl archive status", "kappactl batch list", "kappactl schedule list",
	"kappactl schedule next",
}

// begin runs before each command: it keeps the flags that are settings and starts the clock of --timeout.
func (a *app) begin(cmd *cobra.Command, _ []string) error {
	a.flags.given = config.Flags{}
	cmd.Flags().Visit(keep(a.flags.given))
	if err := a.fromVariables(cmd); err != nil {
		return err
	}
	if value := a.flags.output.value; slices.Contains(a.flags.output.also, value) && cmd.Annotations[outputKey] != value {
		a.flags.output.value = "table"
		return usage(cmd, "%s does not print %s; want %s", cmd.CommandPath(), value, strings.Join(a.flags.output.of, ", "))
	}
	if path := cmd.CommandPath(); a.flags.output.value == string(render.FormatCSV) && !slices.Contains(csvCommands, path) {
		return usage(cmd, "%s prints no rows: csv is for %s", path,
			strings.ReplaceAll(strings.Join(csvCommands, ", "), "kappactl ", ""))
	}
	limit := defaultTimeout
	if text, ok := cmd.Annotations[timeoutKey]; ok {
		own, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("timeout of %s: %w", cmd.CommandPath(), err)
		}
		limit = own
	}
	if a.flags.timeout.set {
		limit = a.flags.timeout.value
	}
	if limit <= 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(cmd.Context(), limit, errTimeout)
	a.stop = cancel
	cmd.SetContext(ctx)
	return nil
}

// keep puts flags as they were given into to.
func keep(to config.Flags) func(*pflag.Flag) {
	return func(f *pflag.Flag) { to[f.Name] = f.Value.String() }
}

// style is how the output stream wants its text.
func (a *app) style() render.Style {
	return render.Style{People: a.sys.OutTTY, Color: a.colors(a.sys.OutTTY), Width: a.sys.Width}
}

func (a *app) colors(terminal bool) bool {
	return terminal && !a.flags.noColor && a.sys.Env("NO_COLOR") == "" && a.sys.Env("TERM") != "dumb"
}

// machine reports whether results are for programs.
func (a *app) machine() bool { return a.flags.output.value != "table" }

// outputs are the values of --output.
func outputs() []string {
	out := []string{"table"}
	for _, f := range render.Formats() {
		out = append(out, string(f))
	}
	return out
}

// progress prints one line on the error stream, unless --quiet.
func (a *app) progress(format string, args ...any) {
	if !a.flags.quiet {
		a.tell(format+"\n", args...)
	}
}

// tell prints to the person at the error stream. When that is gone, nobody is there to be told so.
func (a *app) tell(format string, args ...any) {
	_, _ = fmt.Fprintf(render.Guard(a.sys.Err, false), format, args...)
}

// out is the output stream, kept safe from control sequences in what is printed. CSV and YAML in a pipe keep every
// character; JSON escapes them.
func (a *app) out() io.Writer {
	switch format := render.Format(a.flags.output.value); {
	case format == render.FormatJSON || format == render.FormatLines:
		return render.Guard(a.sys.Out, true)
	case a.machine() && !a.sys.OutTTY:
		return a.sys.Out
	}
	return render.Guard(a.sys.Out, false)
}

// log is the logger of --debug.
func (a *app) log() *slog.Logger {
	if !a.flags.debug {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(a.sys.Err, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// result prints v for programs, or text for people.
func (a *app) result(v any, text func(io.Writer) error) error {
	if a.machine() {
		return render.Write(a.out(), render.Format(a.flags.output.value), v)
	}
	return text(a.out())
}

// usage makes the error of a command line that cannot be run.
func usage(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{
		Cause: strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " "),
		Usage: cmd.UseLine(),
		Next:  cmd.CommandPath() + " --help",
	}
}
