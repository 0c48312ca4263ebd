package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/job"
)

// pathOf are the words of a command below the root.
func pathOf(cmd *cobra.Command) []string { return strings.Fields(cmd.CommandPath())[1:] }

// misspelt swaps the last two letters of a name that differ.
func misspelt(name string) string {
	b := []byte(name)
	for i := len(b) - 1; i > 0; i-- {
		if b[i] != b[i-1] {
			b[i], b[i-1] = b[i-1], b[i]
			return string(b)
		}
	}
	return name + "x"
}

// TestAMisspeltCommandFailsAtEveryLevel (C04): no level of the tree takes a word that it does not know, with or without --help, for a
// question that help answers.
func TestAMisspeltCommandFailsAtEveryLevel(t *testing.T) {
	n := 0
	for _, group := range tree(t) {
		for _, cmd := range visible(group) {
			n++
			wrong := misspelt(cmd.Name())
			for _, args := range [][]string{{wrong}, {wrong, "--help"}, {wrong, "x", "-o", "table"}} {
				line := append(pathOf(group), args...)
				code, out, errs := runCLI(t, line...)
				says := `error: unknown command "` + wrong + `" for "` + group.CommandPath() + `"`
				if code != job.ExitUsage || out != "" || !strings.HasPrefix(errs, says) || !strings.Contains(errs, "\nusage: kappactl") ||
					!strings.HasSuffix(errs, "\nnext: "+cmd.CommandPath()+"\n") {
					t.Errorf("kappactl %s: exit %d\nstdout: %s\nstderr: %s", strings.Join(line, " "), code, out, errs)
				}
			}
			help := append([]string{"help"}, pathOf(cmd)...)
			if code, out, errs := runCLI(t, help...); code != job.ExitOK || errs != "" || !strings.Contains(out, cmd.UseLine()) {
				t.Errorf("kappactl %s: exit %d\nstdout: %s\nstderr: %s", strings.Join(help, " "), code, out, errs)
			}
		}
		if name := group.Name(); len(visible(group)) > 0 && name != "dev" && group.HasParent() { // dev does something by itself, kappactl prints its help
			expectUsage(t, pathOf(group))
		}
	}
	if n < 35 {
		t.Errorf("only %d commands", n)
	}
}

// TestUsageIsShownForUsageErrorsAlone (C04): a wrong command line, a failure and a timeout are told apart by code and text.
func TestUsageIsShownForUsageErrorsAlone(t *testing.T) {
	silent := "postgres://u@" + silentPort(t) + "/d?sslmode=disable"
	for _, c := range []struct {
		args  []string
		code  job.ExitCode
		usage bool
	}{
		{[]string{"status", "--bogus"}, job.ExitUsage, true},
		{[]string{"wait"}, job.ExitUsage, true},
		{[]string{"status", "--dsn", "host=127.0.0.1 port=1 user=u dbname=d"}, job.ExitUnreachable, false},
		{[]string{"man", "/dev/null/man"}, job.ExitFailed, false},
		{[]string{"status", "--dsn", silent, "--timeout", "200ms"}, job.ExitTimeout, false},
	} {
		code, out, errs := runCLI(t, c.args...)
		if code != c.code || out != "" || !strings.HasPrefix(errs, "error: ") || strings.Contains(errs, "usage: ") != c.usage {
			t.Errorf("%v: exit %d\nstdout: %s\nstderr: %s", c.args, code, out, errs)
		}
	}
}

func TestTheTextsOfHelpFitTheTerminal(t *testing.T) {
	for _, cmd := range tree(t) {
		sys, out, _ := fakeSystem(nil)
		sys.Width = 70
		if code := Run(context.Background(), sys, append(pathOf(cmd), "--help")); code != job.ExitOK {
			t.Fatalf("%s --help: exit %d", cmd.CommandPath(), code)
		}
		text, _, _ := strings.Cut(out.String(), "\nUsage:")
		for line := range strings.Lines(text) {
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 70 && !strings.HasPrefix(line, " ") {
				t.Errorf("%s --help: %d characters: %s", cmd.CommandPath(), n, line)
			}
		}
		if strings.Join(strings.Fields(text), " ") != strings.Join(strings.Fields(cmp.Or(cmd.Long, cmd.Short)), " ") {
			t.Errorf("%s --help lost words:\n%s", cmd.CommandPath(), text)
		}
	}
}

// asking is how each command that asks a server is called.
func asking(t *testing.T) map[string][]string {
	t.Helper()
	rows := filepath.Join(t.TempDir(), "rows.ndjson")
	if err := os.WriteFile(rows, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return map[string][]string{
		"ab decisions": {"pageviews"}, "ab forget": {"pageviews", "u1"}, "ab pause": {"pageviews"}, "ab promote": {"pageviews", "v2"}, "ab report": {"pageviews"},
		"ab resume": {"pageviews", "--accept", "fixed"}, "ab start": {"pageviews"}, "ab status": {"pageviews"}, "ab stop": {"pageviews"},
		"ab weights": {"pageviews", "--weights", "v1=0.5,v2=0.5"},
		"abort":      {"pageviews"}, "adopt": {"pageviews", "--view", "public.x"}, "check": {pageviews(), "--require-merge-check"},
		"archive list": nil, "archive prune": {"--before", "2026-01-01", "--yes"}, "archive rebuild": {"pageviews"}, "archive status": nil,
		"archive resume": {"pageviews"}, "archive type": {"pageviews"}, "archive verify": nil,
		"batch cancel": {"pageviews"}, "batch list": {"pageviews"}, "batch rollback": {"pageviews", "3"}, "batch run": {"pageviews"},
		"compare":         {"pageviews"},
		"batch status":    {"pageviews"},
		"deadletter list": {"pageviews"}, "deadletter retry": {"pageviews"}, "deadletter show": {"pageviews", "pageviews/0@1"},
		"deploy": {pageviews()}, "dev load": {rows, "--topic", "x"}, "diff": {"pageviews"}, "doctor": nil, "drop": {"pageviews", "--yes"},
		"history": {"pageviews"}, "init": nil, "new": {"pageviews"}, "pause": {"pageviews"}, "pin": {"pageviews"}, "plan": {pageviews()}, "promote": {"pageviews"},
		"query": {"pageviews"}, "report": {"pageviews"}, "resume": {"pageviews"}, "retire": {"pageviews", "--yes"}, "rollback": {"pageviews"},
		"schedule list": nil, "schedule next": nil, "schedule pause": {"pageviews"}, "schedule resume": {"pageviews"}, "schedule run-now": {"pageviews"},
		"serve": {"--http", "127.0.0.1:0"}, "status": nil, "unpin": {"pageviews"}, "verify": {"pageviews"}, "wait": {"pageviews", "--for", "live"},
		"watch": nil,
	}
}

// asksNobody are the commands that open no connection, or start the servers themselves.
func asksNobody() map[string]bool {
	return map[string]bool{
		"": true, "ab": true, "ab simulate": true, "archive": true, "batch": true, "completion": true, "context": true, "context list": true, "context show": true, "context use": true, "deadletter": true,
		"demo": true, "dev": true, "man": true, "schedule": true, "schema": true, "test": true, "version": true,
	}
}

// TestNoCommandHangsOnServersThatNeverAnswer (C07): every command ends by its timeout and names the server.
func TestNoCommandHangsOnServersThatNeverAnswer(t *testing.T) {
	t.Parallel()
	silent, asking := silentPort(t), asking(t)
	for _, cmd := range tree(t) {
		name := strings.Join(pathOf(cmd), " ")
		args, asks := asking[name]
		if asksNobody()[name] {
			continue
		}
		if !asks {
			t.Errorf("%s: this test does not know how to call it", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line := append(pathOf(cmd), args...)
			line = append(line, "--dsn", "postgres://u@"+silent+"/d?sslmode=disable", "--brokers", silent)
			complaint := ""
			for _, limit := range append([]string{"700ms"}, longer...) {
				if complaint = endsAndNames(t, silent, name, append(line, "--timeout", limit)); complaint == "" {
					return
				}
			}
			t.Error(complaint)
		})
	}
}

// endsAndNames runs a command line against a server that never answers, and says what is wrong with how it ended.
func endsAndNames(t *testing.T, silent, name string, line []string) (complaint string) {
	t.Helper()
	sys, out, errs := fakeSystem(nil)
	sys.Now = time.Now
	ended := make(chan job.ExitCode, 1)
	go func() { ended <- Run(context.Background(), sys, line) }()
	select {
	case code := <-ended:
		fine := (code == job.ExitTimeout || code == job.ExitUnreachable) && (out.Len() == 0 || name == "check") &&
			strings.Contains("\n"+errs.String(), "\nerror: ") && strings.Contains(errs.String(), silent)
		if name == "doctor" {
			fine = code == job.ExitFailed && strings.Contains(out.String(), silent)
		}
		if !fine {
			return fmt.Sprintf("exit %d\nstdout: %s\nstderr: %s", code, out, errs)
		}
	case <-time.After(testPatience):
		t.Fatal("it hangs")
	}
	return ""
}
