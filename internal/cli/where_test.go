package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
)

func TestAProtectedContextIsConfirmed(t *testing.T) {
	t.Parallel()
	f := newFlow(t)
	settings := filepath.Join(t.TempDir(), "settings.yaml")
	if err := os.WriteFile(settings, []byte("contexts: {prod: {protected: true}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		typed string // on a terminal; empty: there is none
		args  []string
		code  job.ExitCode
		says  string
	}{
		{"", []string{"deploy", pageviews(), "--ignore-disk", "--detach"}, job.ExitUsage, "the context prod is protected: off a terminal it needs --yes"},
		{"no\n", []string{"deploy", pageviews(), "--ignore-disk", "--detach"}, job.ExitUsage, "not confirmed"},
		{"", []string{"deploy", pageviews(), "--ignore-disk", "--dry-run"}, job.ExitOK, ""},
		{"prod\n", []string{"deploy", pageviews(), "--ignore-disk", "--detach"}, job.ExitOK, "deploy pageviews in the protected context prod, database "},
		{"", []string{"deploy", pageviews(), "--ignore-disk", "--detach", "--yes"}, job.ExitOK, ""},
		{"", []string{"promote", "pageviews", "v1"}, job.ExitUsage, "promote pageviews: the context prod is protected"},
		{"", []string{"drop", "pageviews", "--dry-run"}, job.ExitConflict, ""},
	} {
		sys, out, errs := fakeSystem(nil)
		sys.InTTY, sys.In = c.typed != "", strings.NewReader(c.typed)
		code := Run(context.Background(), sys, append(append(c.args, "--config", settings), f.config...))
		if code != c.code || !strings.Contains(errs.String(), c.says) || strings.Contains(errs.String(), "protected") && c.says == "" {
			t.Errorf("%v: exit %d\n%s%s", c.args, code, out, errs)
		}
	}
}

func TestCommandsThatReadersNoticeTakeYes(t *testing.T) {
	t.Parallel()
	named := map[string]bool{}
	for _, line := range []string{
		"deploy", "promote", "rollback", "retire", "drop", "adopt", "batch rollback", "ab start", "ab weights", "ab pause", "ab resume", "ab stop",
		"ab promote", "archive prune", // the last one because it deletes
	} {
		named["kappactl "+line] = true
	}
	for _, cmd := range tree(t) {
		if has := cmd.Flags().Lookup("yes") != nil; has != named[cmd.CommandPath()] {
			t.Errorf("%s: --yes: %t", cmd.CommandPath(), has)
		}
	}
}

func TestWhereACommandWorks(t *testing.T) {
	t.Parallel()
	for want, w := range map[string]where{
		"context prod, database shop at db1:5432": {"prod", "shop at db1:5432"}, "database shop at /run": {"", "shop at /run"},
	} {
		if w.String() != want {
			t.Errorf("%s, want %s", w, want)
		}
	}
}
