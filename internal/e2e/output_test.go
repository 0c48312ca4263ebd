package e2e_test

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// printing is a command and the heading of docs/cli-output.md that describes what it prints; also are those that its text refers to.
type printing struct {
	heading string
	also    []string
	args    []string
	code    int
}

func (w *world) printings(topic string) []printing {
	examples, err := filepath.Abs(filepath.Join("..", "..", "examples", "pageviews.yaml"))
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.pool.Exec(w.t.Context(), `CREATE TABLE public.seen (url text PRIMARY KEY, n bigint)`); err != nil {
		w.t.Fatal(err)
	}
	v1, v2 := filepath.Join(w.dir, "v1.yaml"), filepath.Join(w.dir, "v2.yaml")
	settings, rows := w.file("settings.yaml", "current: dev\ncontexts: {dev: {}, prod: {}}\n"), w.file("rows.ndjson", "{\"a\":1}\n")
	const deploy, act = "deploy", "promote"
	return []printing{
		{heading: "version", args: []string{"version"}},
		{heading: "init", args: []string{"init"}},
		{heading: "init", args: []string{"init", "--print"}},
		{heading: "doctor", args: []string{"doctor"}},
		{heading: "context list", args: []string{"context", "list", "--config", settings}},
		{heading: "context show", args: []string{"context", "show", "--config", settings}},
		{heading: "context use", args: []string{"context", "use", "prod", "--config", settings}},
		{heading: "check", args: []string{"check", v1}},
		{heading: "test", args: []string{"test", examples}},
		{heading: "plan", args: []string{"plan", v2}},
		{heading: deploy, args: []string{"deploy", v2, "--dry-run"}},
		{heading: deploy, args: []string{"deploy", v1}},
		{heading: deploy, args: []string{"wait", "clicks", "v2", "--for", "verified", "--report", "reports"}},
		{heading: "status", also: []string{deploy, "diff"}, args: []string{"status"}},
		{heading: "status", also: []string{deploy, "diff"}, args: []string{"status", "clicks"}},
		{heading: "history", args: []string{"history", "clicks"}},
		{heading: "report", args: []string{"report", "clicks", "v2", "--dir", "reports"}},
		{heading: "diff", args: []string{"diff", "clicks"}},
		{heading: "verify", args: []string{"verify", "clicks", "v1"}},
		{heading: "deadletter", args: []string{"deadletter", "list", "clicks"}},
		{heading: "deadletter", args: []string{"deadletter", "show", "clicks", topic + "/0@500"}},
		{heading: "deadletter", args: []string{"deadletter", "retry", "clicks"}, code: 5},
		{heading: act, args: []string{"promote", "clicks", "v2", "--dry-run"}},
		{heading: act, args: []string{"abort", "clicks", "v2", "--dry-run"}},
		{heading: act, args: []string{"pause", "clicks", "v2", "--dry-run"}},
		{heading: act, args: []string{"retire", "clicks", "v2", "--dry-run"}, code: 6},
		{heading: "pin", args: []string{"unpin", "clicks", "v2"}},
		{heading: "drop", args: []string{"drop", "clicks", "--dry-run"}},
		{heading: "adopt", args: []string{"adopt", "seen", "--view", "public.seen", "--dry-run"}},
		{heading: "dev load", args: []string{"dev", "load", rows, "--topic", "loaded"}},
		{heading: "man", args: []string{"man", "pages"}},
	}
}

// outputs runs every command that prints for programs: it is JSON without a flaw, and every field is documented.
func (w *world) outputs(topic string) {
	docs := documented(w)
	for _, p := range w.printings(topic) {
		o := w.code(p.code, append(slices.Clone(p.args), "-o", "json")...)
		w.described(docs, p, w.one(p, o.stdout))
	}
	// The document that report wrote, and the streams of lines.
	text, err := os.ReadFile(filepath.Join(w.dir, "reports", "clicks-v2-deployment-2.json"))
	if err != nil {
		w.t.Fatal(err)
	}
	report := printing{heading: "report", also: []string{"plan", "status", "deploy", "history", "diff"}, args: []string{"the report's file"}}
	w.described(docs, report, w.one(report, string(text)))
	for _, p := range []printing{
		{heading: "deploy", args: []string{"wait", "clicks", "v2", "--for", "verified"}},
		{heading: "watch", also: []string{"deploy"}, args: []string{"watch", "clicks", "--timeout", "1m"}, code: 0},
	} {
		o := w.code(p.code, append(slices.Clone(p.args), "-o", "jsonl")...)
		for line := range strings.Lines(o.stdout) {
			w.described(docs, p, w.one(p, line))
		}
		if strings.Count(o.stdout, "\n") < 2 {
			w.t.Errorf("%v: %s", p.args, o.stdout)
		}
	}
	w.formats()
}

// one decodes exactly one JSON value.
func (w *world) one(p printing, text string) (v any) {
	w.t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	if err := d.Decode(&v); err != nil {
		w.t.Errorf("%v: %v in %s", p.args, err, text)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		w.t.Errorf("%v prints more than one value: %s", p.args, text)
	}
	return v
}

// formats: the other formats are made of the same value.
func (w *world) formats() {
	var status any
	if err := yaml.Unmarshal([]byte(w.ok("status", "clicks", "-o", "yaml")), &status); err != nil {
		w.t.Error(err)
	}
	rows, err := csv.NewReader(strings.NewReader(w.ok("deadletter", "list", "clicks", "-o", "csv"))).ReadAll()
	if err != nil || len(rows) != 4 || rows[0][0] != "record" {
		w.t.Errorf("%v: %v", err, rows)
	}
	if lines := w.ok("history", "clicks", "-o", "jsonl"); strings.Count(lines, "\n") < 5 {
		w.t.Errorf("history: %s", lines)
	}
}

// everyCommand is the name of what comes before the first heading: what every command prints.
const everyCommand = "every command"

// documented are the words in code of each section of docs/cli-output.md, by each name in its heading.
func documented(w *world) map[string]map[string]bool {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "cli-output.md"))
	if err != nil {
		w.t.Fatal(err)
	}
	code, word := regexp.MustCompile("(?s)```.*?```|`[^`\n]+`"), regexp.MustCompile(`[a-z_]+`)
	out := map[string]map[string]bool{}
	for i, section := range strings.Split(string(text), "\n## ") {
		heading, body, _ := strings.Cut(section, "\n")
		if i == 0 {
			heading = everyCommand
		}
		words := map[string]bool{}
		for _, c := range code.FindAllString(body, -1) {
			for _, one := range word.FindAllString(c, -1) {
				words[one] = true
			}
		}
		for _, name := range strings.Split(heading, ", ") {
			out[name] = words
		}
	}
	return out
}

// described checks that the fields of a value, and of what is in it, are words of the documentation.
func (w *world) described(docs map[string]map[string]bool, p printing, v any) {
	w.t.Helper()
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			w.described(docs, p, one)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if name == "failure" {
				w.described(docs, printing{heading: everyCommand, args: p.args}, v[name])
				continue
			}
			known := false
			for _, heading := range append([]string{p.heading, "Failures"}, p.also...) {
				if docs[heading] == nil {
					w.t.Fatalf("no heading %q", heading)
				}
				known = known || docs[heading][name]
			}
			if !known {
				w.t.Errorf("kappactl %s prints %q, which docs/cli-output.md does not describe below %q", strings.Join(p.args, " "), name, p.heading)
			}
			_, named := v[name].(map[string]any)
			if named && slices.Contains([]string{"detail", "offsets", "a", "b", "key", "served", "expected", "row", "columns"}, name) {
				continue // its keys are data
			}
			w.described(docs, p, v[name])
		}
	}
}
