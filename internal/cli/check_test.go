package cli

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
)

// place is FILE:LINE:COLUMN at the start of a problem.
var place = regexp.MustCompile(`(?m)^error: \S+\.yaml:\d+:\d+: \S`)

func TestCheckNamesPlaceCauseAndCureOfEveryWrongFile(t *testing.T) {
	var files []string
	for _, glob := range []string{"../job/testdata/wrong/*.yaml", "../../examples/refused/*.yaml"} {
		found, err := filepath.Glob(glob)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) < 30 {
		t.Fatalf("only %d wrong files", len(files))
	}
	for _, file := range files {
		code, out, errs := runCLI(t, "check", file)
		if code != job.ExitUsage || out != "" || !place.MatchString(errs) || !strings.Contains(errs, "\n  fix: ") {
			t.Errorf("check %s: exit %d\nstdout: %s\nstderr: %s", file, code, out, errs)
		}
	}
}

func TestDeployRefusesAWrongFileBeforeItConnects(t *testing.T) {
	file := filepath.Join("..", "..", "examples", "refused", "median.yaml")
	code, out, errs := runCLI(t, "deploy", file, "--dsn", "host=127.0.0.1 port=1", "--brokers", "127.0.0.1:1")
	if code != job.ExitUsage || out != "" || !strings.Contains(errs, "next: kappactl check "+file+"\n") {
		t.Errorf("exit %d\nstdout: %s\nstderr: %s", code, out, errs)
	}
}

func TestCheckShowsTheResultingTable(t *testing.T) {
	code, out, errs := runCLI(t, "check", filepath.Join("..", "..", "examples", "pageviews.yaml"))
	if code != 0 || !strings.HasPrefix(out, "column\ttype\tstored_as\texact\nurl\ttext\tkey\texact\n") || !strings.HasPrefix(errs, "law: not checked: no database") {
		t.Errorf("exit %d\nstdout: %s\nstderr: %s", code, out, errs)
	}
	code, out, _ = runCLI(t, "check", filepath.Join("..", "..", "examples", "pageviews.yaml"), "-o", "json")
	for _, want := range []string{`"job": "pageviews"`, `"law": "not checked"`, `"stored_as": "sum + count"`, `"exact": true`} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit %d, no %s in %s", code, want, out)
		}
	}
}

func TestAMissingFileIsAUsageError(t *testing.T) {
	folder := t.TempDir()
	for _, file := range []string{filepath.Join(folder, "none.yaml"), folder} {
		code, out, errs := runCLI(t, "check", file)
		if code != job.ExitUsage || out != "" || !strings.Contains(errs, file) || !strings.HasSuffix(errs, "next: kappactl check --help\n") {
			t.Errorf("exit %d\nstdout: %s\nstderr: %s", code, out, errs)
		}
	}
}
