package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/job/strict"
)

// asGroup makes cmd one that only holds others: alone, or with a word that is none of them, it is a usage error.
func asGroup(cmd *cobra.Command) {
	cmd.Use += " COMMAND"
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 && !cmd.HasParent():
			return cmd.Help()
		case len(args) == 0:
			return usage(cmd, "%s needs a command", cmd.CommandPath())
		}
		return unknownCommand(cmd, args[0])
	}
}

// neighbours are commands of other tools, with what does their work here.
var neighbours = map[string]string{
	"list": "status", "ls": "status", "get": "status", "describe": "status", "ps": "status", "show": "status",
	"logs": "history", "log": "history", "events": "history", "apply": "deploy", "run": "deploy", "create": "new",
	"generate": "new",
	"delete":   "drop", "rm": "drop", "destroy": "drop", "undo": "rollback", "revert": "rollback", "validate": "check",
	"lint":   "check",
	"config": "context", "follow": "watch", "top": "watch", "start": "serve", "agent": "serve",
}

func unknownCommand(cmd *cobra.Command, name string) error {
	err := usage(cmd, "unknown command %q for %q", name, cmd.CommandPath())
	// A suggestion makes a better next step than the whole help.
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	near := strict.Nearest(name, names)
	if near == "" {
		if begun := cmd.SuggestionsFor(name); len(begun) > 0 { // what was begun and not ended, as in "dead"
			near = begun[0]
		}
	}
	if other := neighbours[name]; other != "" && !cmd.HasParent() {
		near = other
	}
	if near != "" {
		err.(*usageError).Next = cmd.CommandPath() + " " + near //nolint:errorlint // usage made it
	}
	return err
}

// wrongFlag is the usage error of a flag; one that does not exist is compared with those that do.
func wrongFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return usage(cmd, "%s", err)
	}
	if name := unknown.GetSpecifiedName(); name == "watch" || name == "follow" {
		return usage(cmd, "%s; kappactl watch follows jobs as things happen", err)
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	near := strict.Nearest(unknown.GetSpecifiedName(), names)
	if near == "" {
		return usage(cmd, "%s", err)
	}
	return usage(cmd, "%s; did you mean --%s?", err, near)
}

// exactly wants these arguments, no more and no fewer.
func exactly(names ...string) cobra.PositionalArgs {
	return between(names, nil)
}

// between wants the arguments needed and takes the optional ones.
func between(needed, optional []string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) > 0 && len(needed)+len(optional) == 0 && cmd.HasSubCommands():
			return unknownCommand(cmd, args[0])
		case len(args) < len(needed):
			return usage(cmd, "missing argument %s", strings.Join(needed[len(args):], " "))
		case len(args) > len(needed)+len(optional):
			return usage(cmd, "unexpected argument %q", args[len(needed)+len(optional)])
		}
		return nil
	}
}

// target is JOB [VERSION] as commands take it. Without a version Number is nil.
type target struct {
	Job    job.Name
	Number *job.Number
}

func (t target) String() string {
	if t.Number == nil {
		return string(t.Job)
	}
	return string(t.Job) + " " + t.Number.String()
}

// parseTarget reads JOB [VERSION]; JOB/VERSION is understood too, as messages print it.
func parseTarget(cmd *cobra.Command, args []string) (target, error) {
	name, version, _ := strings.Cut(args[0], "/")
	if len(args) > 1 {
		if version != "" {
			return target{}, usage(cmd, "two versions, %s and %s", version, args[1])
		}
		version = args[1]
	}
	if !job.NamePattern.MatchString(name) {
		return target{}, usage(cmd,
			"%q is not a job name: a lower-case letter, then up to 39 letters, digits or underscores", name)
	}
	t := target{Job: job.Name(name)}
	if version == "" {
		return t, nil
	}
	n, err := job.ParseNumber(version)
	if err != nil {
		return target{}, usage(cmd, "%s", err)
	}
	t.Number = &n
	return t, nil
}

// then is a command's RunE that reads JOB [VERSION] into t and goes on with run.
func (t *target) then(run func(*cobra.Command) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) (err error) {
		if *t, err = parseTarget(cmd, args); err != nil {
			return err
		}
		return run(cmd)
	}
}
