package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/muesli/termenv"
	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/internal/tui"
	"github.com/kappactl/kappactl/reprocess/plan"
)

type watchUIOptions struct {
	*app
	job      job.Name // empty: every job
	readOnly bool
	place    string // context and database
	// protected is the name of a protected context; empty: it is not protected.
	protected string
}

func newWatchUI(a *app, run func(context.Context, watchUIOptions) error) *cobra.Command {
	o := watchUIOptions{app: a}
	cmd := &cobra.Command{
		Use:   "watch [JOB]",
		Short: "Watch jobs and deployments, and act on them, in the terminal",
		Long: `Show all jobs, or one: both versions side by side, progress, partitions, rates, lag, checks and events, once a second.
Keys promote, roll back, pause, resume and abort, after the job's name was typed; ? shows them all. With JOB it ends by itself
when the deployment reaches an end (settled, rolled back, aborted, failed, superseded), with the deployment's exit code, and
leaves five lines about it. In a protected context the keys that readers could notice ask for the context's name, too.

Off a terminal, with TERM=dumb or with --output jsonl it prints lines instead, as deploy and wait do: one for each change of phase
or verdict, one for each warning when it comes up, and at most one of progress in ten seconds. With JOB it then ends where the
deployment stops by itself; without, when it is interrupted or at --timeout. Without --timeout it does not end by itself.`,
		Example:     "  kappactl watch\n  kappactl watch pageviews\n  kappactl watch pageviews --readonly",
		Args:        between(nil, []string{"JOB"}),
		Annotations: map[string]string{timeoutKey: noTimeout, untilStoppedKey: "true"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if out := o.flags.output.value; out == "yaml" || out == "csv" {
				return usage(cmd, "watch prints table, json or jsonl: lines as things happen")
			}
			if len(args) > 0 {
				t, err := parseTarget(cmd, args)
				if err != nil {
					return err
				}
				if t.Number != nil {
					return usage(cmd, "watch takes a job without a version")
				}
				o.job = t.Job
			}
			return run(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.readOnly, "readonly", false, "look only: no keys that act")
	return cmd
}

func runWatchUI(ctx context.Context, o watchUIOptions) error {
	c, err := o.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if !o.interactive() {
		return o.follow(ctx, c)
	}
	o.place = c.where().String()
	if c.settings.Protected {
		o.place, o.protected = o.place+", protected", c.settings.Context
	}
	// The terminal is restored whatever ends the process; other commands leave these signals their own meaning.
	ctx, stop := interruptible(ctx, syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGALRM, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGTRAP)
	defer stop()
	outcome, err := tui.Run(ctx, &watchSource{app: o.silent(), client: c}, o.options())
	var fault *tui.FaultError
	switch {
	case errors.As(err, &fault):
		o.log().Debug("fault", "stack", fault.Stack)
		return err
	case err != nil && outcome.Summary == nil:
		return withNext(o.ended(ctx, err), o.again())
	}
	if printErr := o.summarize(outcome.Summary); printErr != nil {
		return printErr
	}
	if err != nil {
		return withNext(o.ended(ctx, err), o.again())
	}
	return exitWith(outcome.Code)
}

func (o watchUIOptions) summarize(lines []string) error {
	for _, line := range lines {
		if _, err := fmt.Fprintln(o.out(), line); err != nil {
			return err
		}
	}
	return nil
}

// follow watches without a terminal: it prints lines, and ends where the deployment stops by itself, because no key can
// be pressed.
func (o watchUIOptions) follow(ctx context.Context, c *client) error {
	a := *o.app
	if a.machine() {
		a.flags.output.value = string(render.FormatLines)
	}
	f := follower{app: &a, client: c, watch: &o, resumed: true, began: o.sys.Now()}
	d, code, err := f.run(ctx)
	if err != nil {
		return err
	}
	if a.streams() {
		r := f.result(ctx, d, code, plan.Staged{Resumed: true})
		if code != job.ExitOK {
			r = a.failed(ctx, r, &codeError{Code: code, Cause: r.Message, Next: r.Next})
		}
		if err := f.end(r); err != nil {
			return err
		}
		return exitWith(code)
	}
	detail, err := (&watchSource{app: &a, client: c}).Job(ctx, o.job)
	if err != nil {
		return err
	}
	if err := o.summarize(tui.Summary(detail, code, o.sys.Now())); err != nil {
		return err
	}
	return exitWith(code)
}

// interactive reports whether there is a terminal to draw on and to read keys from.
func (o watchUIOptions) interactive() bool {
	term := o.sys.Env("TERM")
	return o.sys.InTTY && o.sys.OutTTY && term != "" && term != "dumb" && !o.machine()
}

func (o watchUIOptions) options() tui.Options {
	return tui.Options{
		Job: o.job, ReadOnly: o.readOnly, Place: o.place, Protected: o.protected,
		In: o.sys.In, Out: o.sys.Out, Now: o.sys.Now, Look: o.look(),
	}
}

// look describes what the terminal can show. NO_COLOR and a locale without block characters reduce it.
func (o watchUIOptions) look() tui.Look {
	depth := termenv.NewOutput(o.sys.Out, termenv.WithEnvironment(environment(o.sys.Env)),
		termenv.WithTTY(true)).ColorProfile()
	return tui.Look{
		Color: o.colors(o.sys.OutTTY) && depth != termenv.Ascii, Depth: depth,
		Light: lightBackground(o.sys.Env("COLORFGBG")), ASCII: onlyASCII(o.sys.Env),
	}
}

// environment is the environment as the library that knows terminals asks for it.
type environment func(string) string

// Environ is not read: it is for running programs.
func (environment) Environ() []string { return nil }

// Getenv is one variable.
func (e environment) Getenv(name string) string { return e(name) }

// ended gives the interrupt by a key, for which the terminal sends no signal, its exit code.
func (o watchUIOptions) ended(ctx context.Context, err error) error {
	if errors.Is(err, tui.ErrInterrupted) || errors.Is(context.Cause(ctx), errInterrupted) {
		return &job.Refusal{Code: job.ExitInterrupted, Cause: errInterrupted.Error(), Err: err}
	}
	return err
}

func (o watchUIOptions) again() string {
	return strings.TrimSpace("kappactl watch "+string(o.job)) + "   # deployments go on"
}

// silent is the app for what runs while the interface has the screen: nothing else may write or ask there. In a
// protected context the interface itself has asked.
func (a *app) silent() *app {
	quiet := *a
	quiet.flags.quiet, quiet.flags.debug, quiet.flags.yes = true, false, true
	return &quiet
}

// onlyASCII reports whether the locale, or the Linux console, has no block characters. Without a locale it is false.
func onlyASCII(env func(string) string) bool {
	locale := strings.ToLower(cmp.Or(env("LC_ALL"), env("LC_CTYPE"), env("LANG")))
	utf8 := locale == "" || strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8")
	return !utf8 || env("TERM") == "linux"
}

// lightBackground reads COLORFGBG, which some terminals set to their colours, as in "0;15". The interface asks the
// terminal as well; this is for those that do not answer.
func lightBackground(colorFgBg string) bool {
	background := colorFgBg[strings.LastIndex(colorFgBg, ";")+1:]
	return background == "7" || background == "15"
}
