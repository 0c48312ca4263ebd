package e2e_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.yaml.in/yaml/v3"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

// ciStep is a command line of a pipeline.
type ciStep struct {
	job string
	run string
}

// githubSteps are the run lines of a workflow, in the order of its jobs, and its env that needs nothing of the service.
func githubSteps(t *testing.T, text []byte) (steps []ciStep, jobFile string) {
	t.Helper()
	var flow struct {
		Env      map[string]string
		Defaults struct{ Run struct{ Shell string } }
		Jobs     struct {
			Check, Deploy struct{ Steps []struct{ Run string } }
		}
	}
	if err := yaml.Unmarshal(text, &flow); err != nil {
		t.Fatal(err)
	}
	if flow.Defaults.Run.Shell != "bash" { // that is what turns on pipefail there
		t.Errorf("shell %q", flow.Defaults.Run.Shell)
	}
	for _, s := range flow.Jobs.Check.Steps {
		steps = append(steps, ciStep{"check", s.Run})
	}
	for _, s := range flow.Jobs.Deploy.Steps {
		steps = append(steps, ciStep{"deploy", s.Run})
	}
	return steps, flow.Env["JOB_FILE"]
}

func gitlabSteps(t *testing.T, text []byte) (steps []ciStep, jobFile string) {
	t.Helper()
	type job struct {
		Script []string
		After  []string `yaml:"after_script"`
	}
	var flow struct {
		Variables     map[string]string
		Check, Deploy job
	}
	if err := yaml.Unmarshal(text, &flow); err != nil {
		t.Fatal(err)
	}
	// The lines of a script share one shell.
	return []ciStep{
		{"check", strings.Join(flow.Check.Script, "\n")}, {"deploy", strings.Join(flow.Deploy.Script, "\n")}, {"deploy", strings.Join(flow.Deploy.After, "\n")},
	}, flow.Variables["JOB_FILE"]
}

// TestPipelinesDeployAJob runs the steps of examples/ci as they stand there, twice, against a broker and an agent.
func TestPipelinesDeployAJob(t *testing.T) {
	t.Parallel()
	for file, parse := range map[string]func(*testing.T, []byte) ([]ciStep, string){"github-actions.yml": githubSteps, "gitlab-ci.yml": gitlabSteps} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			brokers := kafkatest.Fake(t)
			w := newWorld(t, brokers)
			kafkatest.Topic(t, brokers, "pageviews", 4, nil)
			kafkatest.ProduceMany(t, brokers, 500, func(i int) *kgo.Record {
				return &kgo.Record{Topic: "pageviews", Value: fmt.Appendf(nil, `{"user_id":"u%d","url":"/%d","ts":"2026-01-01T10:00:00Z","duration_ms":%d}`, i%9, i%20, i)}
			})
			text, err := os.ReadFile(filepath.Join("..", "..", "examples", "ci", file))
			if err != nil {
				t.Fatal(err)
			}
			steps, jobFile := parse(t, text)
			w.checkedOut(jobFile)
			w.serve()
			for range 2 { // the second time there is nothing to do
				for _, s := range steps {
					w.step(s, jobFile)
				}
			}
			stream, err := os.ReadFile(filepath.Join(w.dir, "deploy.jsonl"))
			if err != nil || !strings.Contains(string(stream), `"exit_code":0`) || !strings.Contains(string(stream), `"nothing_to_do":true`) { // of the second run
				t.Errorf("%v: %s", err, stream)
			}
			if pages, err := filepath.Glob(filepath.Join(w.dir, "reports", "pageviews-v1-*.html")); err != nil || len(pages) != 1 {
				t.Errorf("reports: %v, %v", pages, err)
			}
		})
	}
}

// checkedOut puts an example where the pipeline expects the job file.
func (w *world) checkedOut(jobFile string) {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "pageviews.yaml"))
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(filepath.Join(w.dir, jobFile)), 0o755); err != nil { //nolint:gosec // a test's folder
		w.t.Fatal(err)
	}
	w.file(jobFile, string(text))
}

// step runs a step as the service would: bash, which ends at the first failure, also in a pipe.
func (w *world) step(s ciStep, jobFile string) {
	w.t.Helper()
	if s.run == "" {
		return // an action of the service
	}
	if strings.Contains(s.run, "${{") {
		w.t.Errorf("%s: an expression in a command line is an injection: %s", s.job, s.run)
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", s.run)
	cmd.Dir = w.dir
	cmd.Env = append(w.env("JOB_FILE="+jobFile), "PATH="+filepath.Dir(w.bin)+string(os.PathListSeparator)+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("%s: %s: %v\n%s", s.job, s.run, err, out)
	}
}
