package cli

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

func TestWordsOfOtherToolsLeadToCommands(t *testing.T) {
	t.Parallel()
	all := tree(t)
	for word, command := range neighbours {
		code, _, errs := runCLI(t, word)
		if code != job.ExitUsage || !strings.HasSuffix(errs, "\nnext: kappactl "+command+"\n") {
			t.Errorf("%s: exit %d: %s", word, code, errs)
		}
		found := false
		for _, cmd := range all {
			found = found || slices.Equal(pathOf(cmd), []string{command})
		}
		if !found {
			t.Errorf("%s leads to %s, which is no command", word, command)
		}
	}
	if _, _, errs := runCLI(t, "status", "--watch"); !strings.Contains(errs, "kappactl watch follows jobs") {
		t.Error(errs)
	}
	if code, out, _ := runCLI(t, "--version"); code != job.ExitOK || !strings.HasPrefix(out, "kappactl ") {
		t.Errorf("exit %d: %s", code, out)
	}
}

// A deploy without time is not the fault of the job file.
func TestATimeoutDoesNotBlameTheJobFile(t *testing.T) {
	t.Parallel()
	_, _, errs := runCLI(t, "deploy", pageviews(), "--timeout", "1ns")
	if strings.Contains(errs, "next: kappactl check") {
		t.Error(errs)
	}
}

func TestStatusFitsASmallTerminal(t *testing.T) {
	t.Parallel()
	for _, wide := range []bool{false, true} {
		var b bytes.Buffer
		if err := printStatuses(&b, render.Style{People: true, Width: 80}, twoVersions(), true, wide); err != nil {
			t.Fatal(err)
		}
		fits := true
		for line := range strings.Lines(b.String()) {
			fits = fits && len([]rune(strings.TrimSuffix(line, "\n"))) <= 80
		}
		if fits == wide || strings.Contains(b.String(), "DEAD LETTERS") != wide {
			t.Errorf("wide %v:\n%s", wide, b.String())
		}
	}
	if rows := statusRows(twoVersions()); len(rows) != 2 || rows[0].Version == rows[1].Version {
		t.Errorf("%+v", rows)
	}
}

func TestDebugLogsWhatIsDone(t *testing.T) {
	t.Parallel()
	f := newFlow(t)
	sys, _, errs := fakeSystem(nil)
	if code := Run(context.Background(), sys, append([]string{"status", "--debug"}, f.config...)); code != job.ExitOK ||
		!strings.Contains(errs.String(), "msg=settings") || !strings.Contains(errs.String(), "msg=statement") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

func TestHistoryAndFlagsFitANarrowTerminal(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	err := printEvents(&b, render.Style{People: true, Width: 80}, []ledger.PastEvent{
		{Job: "orders", Version: ptr("v12"), Kind: "rolled_back", By: "ana@laptop", DBRole: "kappactl", Message: strings.Repeat("word ", 20)},
	}, true)
	if err != nil || !strings.Contains(b.String(), "(by") {
		t.Errorf("%v: %s", err, &b)
	}
	sys, out, _ := fakeSystem(nil)
	sys.Width = 80
	if code := Run(t.Context(), sys, []string{"deploy", "--help"}); code != 0 {
		t.Errorf("exit %d", code)
	}
	_, flags, _ := strings.Cut(out.String(), "\nFlags:\n")
	for _, line := range append(strings.Split(b.String(), "\n"), strings.Split(flags, "\n")...) {
		if utf8.RuneCountInString(line) > 80 {
			t.Errorf("%d columns: %s", utf8.RuneCountInString(line), line)
		}
	}
}
