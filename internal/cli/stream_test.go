package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
)

// documentedStream is what docs/cli-output.md says of the event stream: the fields of every kind.
func documentedStream(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "cli-output.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "### The event stream")
	if !found {
		t.Fatal("no section about the event stream")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	word := regexp.MustCompile("`([a-z_]+)`")
	out := map[string][]string{}
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		kind := strings.Trim(strings.TrimSpace(cells[1]), "`")
		for _, m := range word.FindAllStringSubmatch(cells[2], -1) {
			out[kind] = append(out[kind], m[1])
		}
	}
	_, deploy, _ := strings.Cut(string(text), "## deploy, wait")
	deploy, _, _ = strings.Cut(deploy, "### The event stream")
	for _, m := range regexp.MustCompile("(?m)^  \"([a-z_]+)\":|`(applied)`|`(report)`").FindAllStringSubmatch(deploy, -1) {
		out["end"] = append(out["end"], m[1]+m[2]+m[3])
	}
	out["end"] = append(out["end"], "failure") // of any command that fails
	return out
}

// checkStream decodes a stream and refuses what is not documented. It returns the kinds and what matters of each.
func checkStream(t *testing.T, text string) []string {
	t.Helper()
	documented := documentedStream(t)
	var kinds []string
	for line := range strings.Lines(text) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		kind, _ := fields["kind"].(string)
		if documented[kind] == nil {
			t.Errorf("kind %q is not documented", kind)
		}
		for name := range fields {
			if !slices.Contains(documented[kind], name) && !slices.Contains(documented["every line"], name) {
				t.Errorf("%s: field %s is not documented", kind, name)
			}
		}
		for _, name := range append(slices.Clone(documented["every line"]), documented[kind]...) {
			if _, found := fields[name]; !found && name != "deploy" && name != "exit_code" && name != "applied" && name != "report" && name != "failure" {
				t.Errorf("%s: the documented field %s is not printed: %s", kind, name, line)
			}
		}
		switch kind {
		case "phase":
			kind += " " + fields["phase"].(string) + " " + fields["state"].(string)
		case "verdict", "check", "event":
			kind += " " + fields[kind].(string)
		case "end":
			if _, found := fields["exit_code"].(float64); !found {
				t.Errorf("no exit code: %s", line)
			}
		}
		kinds = append(kinds, kind)
	}
	return kinds
}

func TestDeployStreamsWhatHappens(t *testing.T) {
	t.Parallel()
	f := newFlow(t)
	f.start("deploy", pageviews(), "-o", "jsonl")
	f.out.await(t, `"kind":"start","job":"pageviews","version":"v1","schema":1,"deployment":1,"phase":"staged","resumed":false`)
	f.exec(`INSERT INTO kappactl.event (job, number, deployment, kind, message, detail) VALUES
		('pageviews', 1, 1, 'phase', '{}', '{"from": "catching_up", "to": "caught_up"}'), ('pageviews', 1, 1, 'warning', '{"code": "refused", "args": {"cause": "column x is NULL"}}', '{}'),
		('pageviews', 1, 1, 'checks_failed', '{}', '{"checks": [{"name": "not_empty", "outcome": "pass"}, {"name": "close", "outcome": "fail", "detail": "it returned false", "detail_code": "check_returned_false"}]}'),
		('pageviews', 1, 1, 'check_passed', '{"code": "refused", "args": {"cause": "after the flip: check later: pass"}}', '{"checks": [{"name": "later", "outcome": "pass"}]}')`)
	f.out.await(t, `"check":"later","outcome":"pass"`)
	f.exec(`UPDATE kappactl.version SET phase = 'live', phase_since = clock_timestamp(), verdict = 'ready', reason = '{}'`)
	f.exec(`UPDATE kappactl.deployment SET state = 'settled', promoted_at = clock_timestamp(), ended_at = clock_timestamp()`)
	f.ends(job.ExitOK)
	var got []string
	for _, kind := range checkStream(t, f.out.String()) {
		if kind != "progress" && kind != "phase live rolling_out" && kind != "verdict starting" { // as it was looked at in between or not
			got = append(got, kind)
		}
	}
	want := []string{
		"start", "event deploy", "phase caught_up rolling_out", "warning", "check not_empty", "check close", "check later", "phase live settled", "verdict ready", "end",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s\n%s", diff, f.out)
	}
	if f.errs.String() != "" {
		t.Errorf("stderr: %s", f.errs)
	}
}

func TestAStreamThatIsInterruptedEndsWithTheCode(t *testing.T) {
	t.Parallel()
	f := newFlow(t)
	f.start("deploy", pageviews(), "-o", "jsonl")
	f.out.await(t, `"kind":"event"`)
	f.stop(errInterrupted)
	f.ends(job.ExitInterrupted)
	kinds := checkStream(t, f.out.String())
	if kinds[len(kinds)-1] != "end" || !strings.Contains(f.out.String(), `"exit_code":130`) || !strings.Contains(f.out.String(), "kappactl wait pageviews v1 --for live") {
		t.Error(f.out)
	}
	for _, limit := range longer {
		f.start("wait", "pageviews", "--for", "live", "-o", "jsonl", "--timeout", limit)
		f.ends(job.ExitTimeout)
		if strings.Contains(f.out.String(), `"kind":"start"`) {
			break
		}
	}
	kinds = checkStream(t, f.out.String())
	if strings.Contains(f.out.String(), `"seconds":0,`) {
		t.Errorf("it took no time: %s", f.out)
	}
	if kinds[0] != "start" || slices.Contains(kinds, "event deploy") || !strings.Contains(f.out.String(), `"exit_code":4`) {
		t.Errorf("a command that comes back repeats nothing: %s", f.out)
	}
	f.start("deploy", pageviews(), "-o", "jsonl", "--dry-run")
	f.ends(job.ExitOK)
	if diff := cmp.Diff([]string{"start", "end"}, checkStream(t, f.out.String())); diff != "" {
		t.Error(diff)
	}
}
