package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/kappactl/kappactl/internal/config"
	"github.com/kappactl/kappactl/internal/job"
)

func TestEveryCommandHasAManualPage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	if code, out, errs := runCLI(t, "man", dir); code != 0 || !strings.HasSuffix(out, " pages in "+dir+"\n") {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	groff, _ := exec.LookPath("groff")
	for _, cmd := range tree(t) {
		path := filepath.Join(dir, manName(cmd)+".1")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
			continue
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(string(text), troff("--"+f.Name)) {
				t.Errorf("%s does not tell of --%s", path, f.Name)
			}
		})
		for _, want := range []string{troff(cmd.Short), ".SH EXAMPLES", ".SH EXIT STATUS\n.TP\n.B 0\n", ".B 130\n"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s lacks %q", path, want)
			}
		}
		if groff != "" && cmd.Name() == "deploy" {
			if out, err := exec.Command(groff, "-man", "-Tutf8", "-ww", "-z", path).CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%s: %v: %s", path, err, out)
			}
		}
	}
}

func TestHelpTopics(t *testing.T) {
	for _, topic := range helpTopics() {
		code, out, errs := runCLI(t, "help", topic.name)
		if code != 0 || errs != "" || len(out) < 500 {
			t.Errorf("help %s: exit %d: %s%s", topic.name, code, out, errs)
		}
		if _, root, _ := runCLI(t, "help", "help"); !strings.Contains(root, topic.name) {
			t.Errorf("help does not name the topic %s", topic.name)
		}
	}
	_, codes, _ := runCLI(t, "help", "exit-codes")
	for _, want := range []string{"\n  0\n", "\n  130\n"} {
		if !strings.Contains(codes, want) {
			t.Errorf("help exit-codes lacks %q", want)
		}
	}
	_, env, _ := runCLI(t, "help", "environment")
	for _, o := range config.Table() {
		if o.Env != "" && !strings.Contains(env, "  "+o.Env+"\n") {
			t.Errorf("help environment lacks %s", o.Env)
		}
	}
	if code, _, errs := runCLI(t, "help", "exit-codse"); code != job.ExitUsage || !strings.Contains(errs, "kappactl help exit-codes") {
		t.Errorf("exit %d: %s", code, errs)
	}
}
