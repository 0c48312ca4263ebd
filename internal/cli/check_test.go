package cli

import (
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/mergecheck"
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
	if code != 0 || !strings.HasPrefix(out, "column\ttype\tstored_as\texact\nurl\ttext\tkey\texact\n") || !strings.HasPrefix(errs, "merge check: not run: no database") {
		t.Errorf("exit %d\nstdout: %s\nstderr: %s", code, out, errs)
	}
	code, out, _ = runCLI(t, "check", filepath.Join("..", "..", "examples", "pageviews.yaml"), "-o", "json")
	for _, want := range []string{`"job": "pageviews"`, `"result": "not run"`, `"stored_as": "sum + count"`, `"exact": true`} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit %d, no %s in %s", code, want, out)
		}
	}
}

func TestAMissingFileIsAUsageError(t *testing.T) {
	folder := t.TempDir()
	for file, next := range map[string]string{filepath.Join(folder, "none.yaml"): "check --help\n", folder: "new JOB --topic TOPIC --file " + folder + "/JOB.yaml\n"} {
		code, out, errs := runCLI(t, "check", file)
		if code != job.ExitUsage || out != "" || !strings.Contains(errs, file) || !strings.HasSuffix(errs, "next: kappactl "+next) {
			t.Errorf("exit %d\nstdout: %s\nstderr: %s", code, out, errs)
		}
	}
}

func TestAFailedMergeCheckNamesTheColumnsToRewriteAndTheCommandThatTriesAgain(t *testing.T) {
	o := checkOptions{app: &app{}, file: jobFile{path: "sums.yaml"}}
	r := checkResult{Columns: []checkColumn{{Name: "k", Exact: true}, {Name: "r"}}, MergeCheck: mergeCheck{Result: mergeFailed, Report: &mergecheck.Report{
		Seed: 7, Failure: &mergecheck.Failure{Differences: []mergecheck.Difference{{Key: map[string]*string{"k": ptr("a")}}}},
	}}}
	next := func() string {
		t.Helper()
		var refusal *job.Refusal
		if err := o.verdict(r, nil); !errors.As(err, &refusal) || refusal.Code != job.ExitChecks {
			t.Fatal(err)
		}
		return refusal.Next
	}
	if got := next(); !strings.Contains(got, `cast what "r" is computed from to DECIMAL`) || !strings.Contains(got, "then kappactl check sums.yaml --seed 7") {
		t.Error(got)
	}
	r.Columns[1].Exact = true
	if got := next(); !strings.Contains(got, "replace the aggregates") || strings.Contains(got, "DECIMAL") {
		t.Error(got)
	}
}
