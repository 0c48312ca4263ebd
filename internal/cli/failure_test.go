package cli

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/kappactl/kappactl/internal/job"
)

// failureOf reads the one document on the output stream of a command that failed.
func failureOf(t *testing.T, out string) failureDoc {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(out))
	var doc struct{ Failure *failureDoc }
	if err := d.Decode(&doc); err != nil || doc.Failure == nil || d.More() {
		t.Fatalf("%v: %s", err, out)
	}
	return *doc.Failure
}

// wrongly is how each command that asks no server is called so that it fails.
func wrongly(t *testing.T) map[string][]string {
	t.Helper()
	wrong := filepath.Join(t.TempDir(), "wrong.yaml")
	if err := os.WriteFile(wrong, []byte("job: x\nsource: {topics: [t], columns: {a: text}, colums: 1}\nquery: SELECT 1\nserve: {view: x}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return map[string][]string{
		"archive": nil, "batch": nil, "context": nil, "deadletter": nil, "schedule": nil, "ab": nil,
		"completion": {"tcsh"}, "man": {"/dev/null/man"}, "schema": {"extra"}, "version": {"extra"}, "test": {wrong},
		"ab simulate": {"--policy", "none"}, "": {"deplyo"},
		"context list": {"extra"}, "context show": {"extra"}, "context use": {"nowhere", "--config", "/dev/null/kappactl.yaml"},
		"demo": {"extra"}, "dev": {"extra"},
	}
}

func TestEveryCommandFailsAsData(t *testing.T) {
	t.Parallel()
	calls := asking(t)
	maps.Copy(calls, wrongly(t))
	dead := closedPort(t)
	for _, cmd := range tree(t) {
		name := strings.Join(pathOf(cmd), " ")
		args, known := calls[name]
		if !known {
			t.Errorf("%s: this test does not know how to call it", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line := append(pathOf(cmd), args...)
			if _, asks := asking(t)[name]; asks {
				line = append(line, "--dsn", "host=127.0.0.1 user=u dbname=d port="+strings.TrimPrefix(dead, "127.0.0.1:"), "--brokers", dead)
			}
			for _, format := range []string{"json", "jsonl"} {
				sys, out, errs := fakeSystem(nil)
				code := Run(context.Background(), sys, append(line[:len(line):len(line)], "-o", format))
				f := failureOf(t, out.String())
				if code == job.ExitOK || f.ExitCode != code || f.Code != "job_file" && f.Code != failureCode(code) || f.Message == "" || f.Problems == nil {
					t.Errorf("%v -o %s: exit %d: %s", line, format, code, out)
				}
				if name != "doctor" && !strings.Contains(errs.String(), "error: ") {
					t.Errorf("%v -o %s: %s", line, format, errs)
				}
			}
		})
	}
}

func TestTheFormatOfAFailureIsFoundOnAWrongCommandLine(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"status --bogus -o json", "-o json status --bogus", "status --bogus --output=json", "status --bogus -ojson", "status --bogus --output json",
		"deplyo -o json", "status --timeout soon -o json",
	} {
		code, out, _ := runCLI(t, strings.Fields(line)...)
		if f := failureOf(t, out); code != job.ExitUsage || f.Code != "usage" || f.Next == "" {
			t.Errorf("%s: exit %d: %s", line, code, out)
		}
	}
	sys, out, _ := fakeSystem(map[string]string{outputVariable: "yaml"})
	Run(context.Background(), sys, []string{"status", "--bogus"})
	var doc struct {
		Failure struct {
			ExitCode int `yaml:"exit_code"`
		}
	}
	if err := yaml.Unmarshal(out.Bytes(), &doc); err != nil || doc.Failure.ExitCode != 2 {
		t.Errorf("%v: %s", err, out)
	}
	for _, line := range []string{"status --bogus -o csv", "status --bogus -o xml", "status --bogus", "status --bogus -- -o json"} {
		if _, out, _ := runCLI(t, strings.Fields(line)...); out != "" {
			t.Errorf("%s: %s", line, out)
		}
	}
}

func TestFaultsOfAJobFileHaveTheirPlace(t *testing.T) {
	t.Parallel()
	wrong := wrongly(t)["test"][0]
	_, out, _ := runCLI(t, "test", wrong, "-o", "json")
	f := failureOf(t, out)
	if f.Code != "job_file" || f.File != wrong || f.Line == nil || *f.Line != 2 || f.Column == nil || f.Fix == "" || len(f.Problems) < 1 ||
		f.Next != "kappactl check "+wrong || f.Problems[0].Path != "source.colums" || f.Problems[0].Excerpt == "" ||
		f.Message != `source.colums: unknown key "colums"` {
		t.Errorf("%s", out)
	}
}

// A result that fails is one document with the failure in it.
func TestAResultHoldsItsFailure(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(pageviews())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "fails.yaml")
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), "views: 2", "views: 3", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, _ := runCLI(t, "test", path, "-o", "json")
	f := failureOf(t, out)
	var r testResult
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.Failed != 1 || code != job.ExitChecks || f.Code != "checks" || f.Next != "kappactl test "+path {
		t.Errorf("exit %d, %v: %s", code, err, out)
	}
}

func TestGitHubGetsAnnotations(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	wrong := filepath.Join(dir, "jobs", "a,b.yaml")
	if err := os.MkdirAll(filepath.Dir(wrong), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(wrong, []byte("job: x\nnew\x07: 50%\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		env  map[string]string
		args []string
		want string
	}{
		{map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": dir}, []string{"check", wrong}, "::error file=jobs/a%2Cb.yaml,line=2,col=1,title=kappactl"},
		{map[string]string{"GITHUB_ACTIONS": "true"}, []string{"plan", pageviews()}, "::error file=" + pageviews() + ",title=kappactl::no "},
		{map[string]string{"GITHUB_ACTIONS": "true"}, []string{"status", "--bogus"}, "::error title=kappactl::unknown flag%3A --bogus"},
		{nil, []string{"check", wrong}, ""},
	} {
		sys, _, errs := fakeSystem(c.env)
		Run(context.Background(), sys, c.args)
		found := ""
		for line := range strings.Lines(errs.String()) {
			if strings.HasPrefix(line, "::") {
				found = line
				break
			}
		}
		if !strings.HasPrefix(strings.ReplaceAll(found, "unknown flag:", "unknown flag%3A"), c.want) || (found == "") != (c.want == "") {
			t.Errorf("%v: %s", c.args, errs)
		}
	}
}

func TestTestsAsJUnit(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(pageviews())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "fails.yaml")
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), "views: 2", "views: 3", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file                    string
		tests, failures, errors int
		code                    job.ExitCode
		line                    string // of the job file: what the line of the case holds
	}{
		{pageviews(), 1, 0, 0, job.ExitOK, "- name: counts per hour"},
		{path, 1, 1, 0, job.ExitChecks, "- name: counts per hour"},
		{wrongly(t)["test"][0], 1, 0, 1, job.ExitUsage, ""},
	} {
		code, out, errs := runCLI(t, "test", c.file, "-o", "junit")
		var got junitSuites
		if err := xml.Unmarshal([]byte(out), &got); err != nil || code != c.code || got.Tests != c.tests || got.Failures != c.failures ||
			got.Errors != c.errors || len(got.Suites) != 1 || got.Suites[0].File != c.file {
			t.Fatalf("%s: exit %d, %v\n%s%s", c.file, code, err, out, errs)
		}
		text, err := os.ReadFile(c.file)
		if err != nil {
			t.Fatal(err)
		}
		one := got.Suites[0].Cases[0]
		if lines := strings.Split(string(text), "\n"); one.Line < 1 || !strings.Contains(lines[one.Line-1], c.line) {
			t.Errorf("%s: the case has line %d", c.file, one.Line)
		}
		if one.Failure != nil && !strings.HasPrefix(one.Failure.Text, fmt.Sprintf("%s:%d\n", c.file, one.Line)) {
			t.Errorf("%s: %s", c.file, one.Failure.Text)
		}
	}
	if code, out, errs := runCLI(t, "status", "-o", "junit"); code != job.ExitUsage || out != "" || !strings.Contains(errs, "does not print junit") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}
