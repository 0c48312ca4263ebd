package cli

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/job"
)

var update = flag.Bool("update", false, "write the generated pages of docs/cli")

// tree lists all commands, the root first.
func tree(t *testing.T) []*cobra.Command {
	t.Helper()
	sys, _, _ := fakeSystem(nil)
	var all []*cobra.Command
	var add func(*cobra.Command)
	add = func(cmd *cobra.Command) {
		cmd.InitDefaultHelpFlag()
		all = append(all, cmd)
		for _, c := range visible(cmd) {
			add(c)
		}
	}
	add(newRoot(&app{sys: sys}))
	if len(all) < 15 {
		t.Fatalf("only %d commands: this test checks too little", len(all))
	}
	return all
}

func TestEveryCommandIsComplete(t *testing.T) {
	for _, cmd := range tree(t) {
		name := cmd.CommandPath()
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: Short %q: a phrase without a full stop", name, cmd.Short)
		}
		if !strings.HasPrefix(cmd.Example, "  ") || !strings.Contains(cmd.Example, "kappactl ") {
			t.Errorf("%s: Example %q: lines that start with two spaces and show the command", name, cmd.Example)
		}
		if cmd.Args == nil {
			t.Errorf("%s: no Args: a wrong number of arguments would pass", name)
		}
		if cmd.RunE == nil || cmd.Run != nil {
			t.Errorf("%s: needs RunE, and no Run", name)
		}
		if cmd.Flag("output") == nil || cmd.Flag("timeout") == nil {
			t.Errorf("%s: no --output or --timeout", name)
		}
	}
}

func TestEveryCommandRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, cmd := range tree(t) {
		path := strings.Fields(cmd.CommandPath())[1:]
		for _, wrong := range [][]string{{"--no-such-flag"}, {"a", "b", "c", "d"}, {"-o", "xml"}, {"--timeout", "soon"}} {
			if len(wrong) > 2 && strings.Contains(cmd.Use, "...") {
				continue // as many as there are
			}
			expectUsage(t, append(path[:len(path):len(path)], wrong...))
		}
	}
}

// expectUsage runs a wrong command line: exit 2, the reason on the error stream, nothing on the output.
func expectUsage(t *testing.T, args []string) {
	t.Helper()
	code, out, errs := runCLI(t, args...)
	if code != job.ExitUsage || out != "" || !strings.HasPrefix(errs, "error: ") || !strings.Contains(errs, "\nnext: kappactl") {
		t.Errorf("kappactl %s: exit %d\nstdout: %s\nstderr: %s", strings.Join(args, " "), code, out, errs)
	}
}

func TestWithoutACommandTheHelpIsPrinted(t *testing.T) {
	code, out, errs := runCLI(t)
	if code != job.ExitOK || errs != "" || !strings.Contains(out, "Usage:\n  kappactl COMMAND [flags]") {
		t.Errorf("exit %d\nstdout: %s\nstderr: %s", code, out, errs)
	}
}

func TestWrongCommandLines(t *testing.T) {
	for _, line := range []string{
		"deplyo", "dev laod", "dev load", "help deplyo", "help dev laod", "help version extra", "completion", "completion tcsh",
		"deploy", "check", "promote", "wait", "promote Nope!", "promote pageviews vv1", "promote pageviews/v1 v2", "promote pageviews -1",
	} {
		expectUsage(t, strings.Fields(line))
	}
}

func TestUnknownFlagSuggestsTheNearest(t *testing.T) {
	for flag, near := range map[string]string{"--dryrun": "; did you mean --dry-run?", "--timout": "; did you mean --timeout?", "--verbose": "", "-z": ""} {
		_, _, errs := runCLI(t, "promote", "pageviews", flag)
		line, _, _ := strings.Cut(errs, "\n")
		if !strings.HasPrefix(line, "error: unknown ") || strings.Contains(line, "mean") != (near != "") || !strings.HasSuffix(line, near) {
			t.Errorf("%s: %s", flag, errs)
		}
	}
}

func TestUnknownCommandSuggestsTheNearest(t *testing.T) {
	_, _, errs := runCLI(t, "deplyo")
	want := "error: unknown command \"deplyo\" for \"kappactl\"\nusage: kappactl COMMAND [flags]\nnext: kappactl deploy\n"
	if diff := cmp.Diff(want, errs); diff != "" {
		t.Error(diff)
	}
}

func TestHelpOpensNoConnectionAndExitsZero(t *testing.T) {
	for _, cmd := range tree(t) {
		args := strings.Fields(cmd.CommandPath() + " --help --dsn port=1 --brokers 127.0.0.1:1")[1:]
		code, out, errs := runCLI(t, args...)
		if code != 0 || errs != "" || !strings.Contains(out, "Usage:") || !strings.Contains(out, "kappactl") {
			t.Errorf("%s --help: exit %d, stdout %q, stderr %q", cmd.CommandPath(), code, out, errs)
		}
	}
}

// TestReferenceInSync compares docs/cli with the command tree; -update writes it.
func TestReferenceInSync(t *testing.T) {
	dir := filepath.Join("..", "..", "docs", "cli")
	want := map[string]string{}
	for _, cmd := range tree(t) {
		want[page(cmd)] = document(cmd)
	}
	if *update {
		writePages(t, dir, want)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		got[e.Name()] = string(text)
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("docs/cli is not what the commands say; run: make docs\n%s", diff)
	}
}

func writePages(t *testing.T, dir string, pages map[string]string) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range pages {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
	}
}

func TestExitCodesAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "exit-codes.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []job.ExitCode{
		job.ExitOK, job.ExitFailed, job.ExitUsage, job.ExitNotCaughtUp, job.ExitTimeout, job.ExitChecks, job.ExitConflict, job.ExitGap,
		job.ExitUnhealthy, job.ExitRolledBack, job.ExitNothing, job.ExitUnreachable, job.ExitInterrupted,
	} {
		if !strings.Contains(string(text), fmt.Sprintf("| %d |", code)) {
			t.Errorf("docs/exit-codes.md does not explain %d", code)
		}
	}
}

// TestWhatEveryCommandPrintsIsDocumented walks the tree: each command that prints stands in a heading of docs/cli-output.md.
func TestWhatEveryCommandPrintsIsDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "cli-output.md"))
	if err != nil {
		t.Fatal(err)
	}
	described := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		heading, found := strings.CutPrefix(line, "## ")
		if !found {
			continue
		}
		for _, name := range strings.Split(strings.TrimSpace(heading), ", ") {
			if described[name] {
				t.Errorf("%s stands in two headings", name)
			}
			described[name] = true
		}
	}
	for _, cmd := range tree(t) {
		name, _ := strings.CutPrefix(cmd.CommandPath(), "kappactl")
		name = strings.TrimSpace(name)
		group, _, _ := strings.Cut(name, " ")
		if len(visible(cmd)) > 0 && name != "dev" {
			continue // it holds others and prints nothing
		}
		if !described[name] && !described[group] {
			t.Errorf("docs/cli-output.md does not describe what %s prints", cmd.CommandPath())
		}
	}
}
