package httpapi

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
)

var update = flag.Bool("update", false, "write the generated part of docs/metrics.md")

// exported is the text of /metrics of an agent that knows everything of one version, its layers, one archived partition and one
// schedule.
func exported(t *testing.T) string {
	t.Helper()
	n, s := int64(1), 1.0
	agent := server(nil, []Version{{
		Ref: job.Ref{Job: "a", Number: 1}, Phase: job.Live, Verdict: job.Ready, LagRecords: &n, LagSeconds: &s, RecordsPerSecond: &s,
		Partitions: []Partition{{
			Topic: "t", LagRecords: &n, LagSeconds: &s, RecordsPerSecond: &s, RetentionSeconds: &s, Verdict: job.Ready, Reason: "ready",
		}},
		Checks: []Check{{Name: "c", Stage: "after", Outcome: "pass"}},
	}}, nil)
	agent.deps.Archived = func(context.Context) ([]Archived, error) {
		return []Archived{{Topic: "t", Partition: 1, State: "late", Behind: &n, RetentionSeconds: &s, Records: 1, Bytes: 1}}, nil
	}
	failed := false
	agent.deps.Scheduled = func(context.Context) ([]Scheduled, error) {
		return []Scheduled{{Job: "a", State: "active", NextIn: &s, LastAge: &s, LastFailed: &failed}}, nil
	}
	agent.deps.Layers = func(context.Context) ([]Layers, error) {
		live := 2
		return []Layers{{
			Ref: job.Ref{Job: "a", Number: 1}, Live: &live, CutAge: &s, Rows: &n, Bytes: &n, SpeedRows: &n, LastTook: &s, LastFailed: &failed,
			Run: &Run{ETA: &s},
		}}, nil
	}
	_, body := get(t, agent, "/metrics")
	return body
}

var (
	helpLine  = regexp.MustCompile(`(?m)^# HELP (kappactl_\w+) (.*)\n# TYPE \w+ (\w+)\n(.*)`)
	labelName = regexp.MustCompile(`(\w+)="`)
)

// table is the table of docs/metrics.md, and the names in it.
func table(t *testing.T) (text string, names []string) {
	t.Helper()
	var b strings.Builder
	b.WriteString("| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n")
	for _, m := range helpLine.FindAllStringSubmatch(exported(t), -1) {
		var labels []string
		for _, l := range labelName.FindAllStringSubmatch(m[4], -1) {
			if l[1] != "le" {
				labels = append(labels, "`"+l[1]+"`")
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m[1], m[3], strings.Join(labels, ", "), m[2])
		names = append(names, m[1])
	}
	return b.String(), names
}

const metricsPage = "../../docs/metrics.md"

func TestMetricsPageInSync(t *testing.T) {
	want, names := table(t)
	if len(names) < 20 {
		t.Fatalf("only %d metrics: %v", len(names), names)
	}
	text, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- metrics -->\n\n", "\n<!-- /metrics -->"
	head, rest, found := strings.Cut(string(text), begin)
	got, tail, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s lacks its marks", metricsPage)
	}
	if *update {
		if err := os.WriteFile(metricsPage, []byte(head+begin+want+end+tail), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Errorf("%s is not what agents export: run make docs\n%s", metricsPage, want)
	}
}

// TestMetricsThatTextsNameAreExported: an alert rule on a metric that no agent exports would never fire.
func TestMetricsThatTextsNameAreExported(t *testing.T) {
	_, names := table(t)
	known := append(slices.Clone(names), "kappactl_agent", "kappactl_cli", "kappactl_reader", "kappactl_checks") // the roles of rights.sql
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	used := 0
	for _, path := range append(files, "../../README.md", "../../packaging/alerts.yaml") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`\bkappactl_[a-z_]+\b(?:\.md)?`).FindAllString(string(text), -1) {
			if strings.HasSuffix(name, "_") || strings.HasSuffix(name, ".md") { // a family of names, a page of a command
				continue
			}
			for _, suffix := range []string{"_bucket", "_count", "_sum"} {
				name = strings.TrimSuffix(name, suffix)
			}
			used++
			if !slices.Contains(known, name) {
				t.Errorf("%s names %s, which no agent exports", path, name)
			}
		}
	}
	if used < 20 {
		t.Errorf("only %d names were found", used)
	}
}
