package cli

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/kappactl/kappactl/internal/job"
)

// removeOptions are what commands that take something away for good have in common.
type removeOptions struct {
	*app
	yes       bool
	dryRun    bool
	waitAgent duration
}

func (o *removeOptions) add(f *pflag.FlagSet) {
	o.addAsking(f)
	waitAgentFlag(f, &o.waitAgent)
}

// addAsking adds the flags of an act that this command does itself.
func (o *removeOptions) addAsking(f *pflag.FlagSet) {
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	f.BoolVar(&o.dryRun, "dry-run", false, "print what would be done, change nothing")
}

// mayAsk refuses an act that nobody has confirmed and nobody is there to confirm. does says what the act does.
func (o removeOptions) mayAsk(does string) error {
	if o.yes || o.dryRun || o.sys.InTTY {
		return nil
	}
	return &job.Refusal{
		Code: job.ExitUsage, Cause: does + ": off a terminal it needs --yes",
		Next: "add --yes, or look first with --dry-run",
	}
}

// confirmed asks on the terminal, unless --yes was given, and refuses when the answer is not the right one.
func (o removeOptions) confirmed(question string, right func(answer string) bool) error {
	if o.yes {
		return nil
	}
	o.tell("%s", question)
	line, err := readLine(o.sys.In)
	if err == nil && right(line) {
		return nil
	}
	if err != nil {
		o.tell("\n") // the line of the question has no end yet
	}
	return &job.Refusal{
		Code: job.ExitUsage, Cause: "not confirmed: nothing was done",
		Next: "the same command again; --dry-run shows what it would do, --yes does not ask",
	}
}

// agrees reports whether the answer to a question is yes.
func agrees(answer string) bool {
	return strings.EqualFold(answer, "y") || strings.EqualFold(answer, "yes")
}
