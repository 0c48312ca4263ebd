package cli

import (
	"strings"
	"testing"
	"time"
)

func TestCompletionIsSilentAndQuickWithoutADatabase(t *testing.T) {
	for _, dsn := range []string{"host=127.0.0.1 port=1 user=u dbname=d", "host=192.0.2.1 port=5432 user=u dbname=d", "no dsn at all"} {
		began := time.Now()
		code, out, _ := runCLI(t, "__complete", "status", "--dsn", dsn, "")
		if code != 0 || strings.TrimSpace(out) != ":4" {
			t.Errorf("%s: exit %d: %q", dsn, code, out)
		}
		if took := time.Since(began); took > 3*completeIn {
			t.Errorf("%s: took %s", dsn, took)
		}
	}
}

func TestEveryCommandThatTakesAJobCompletesIt(t *testing.T) {
	n := 0
	for _, cmd := range tree(t) {
		_, names, _ := strings.Cut(cmd.Use, " ")
		if !strings.HasPrefix(names, "JOB") && !strings.HasPrefix(names, "[JOB") {
			continue
		}
		n++
		if cmd.ValidArgsFunction == nil {
			t.Errorf("%s does not complete jobs", cmd.CommandPath())
		}
	}
	if n < 10 {
		t.Errorf("only %d commands take a job", n)
	}
}
