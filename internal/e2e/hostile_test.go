package e2e_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
)

// hostileText is what a stranger may put into a record: it clears the screen, sets a title, forges a line, introduces a sequence in
// one C1 character and reverses the direction of text.
const hostileText = "x\x1b[2J\x1b]0;owned\x07\rok\u009b2Jy\u202ez\u2028"

// TestRecordsCannotSteerATerminal prints records, keys, dead letters and arguments with control characters by every command that
// shows them, in every format.
func TestRecordsCannotSteerATerminal(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Fake(t)
	w := newWorld(t, brokers)
	w.serve()
	topic := kafkatest.Name("hostile")
	kafkatest.Topic(t, brokers, topic, 1, nil)
	url := strconv.QuoteToASCII(hostileText)
	url = strings.NewReplacer(`\x1b`, `\u001b`, `\x07`, `\u0007`, `\a`, `\u0007`, `\x9b`, `\u009b`).Replace(url)
	kafkatest.Produce(t, brokers, topic, 0, `{"url":`+url+`,"ms":1}`, `{"url":`+url+`,"ms":2}`, "not json "+hostileText, `{"url":"plain","ms":3}`)
	w.ok("deploy", w.file("a.yaml", fmt.Sprintf(lookedAtJob, topic, "")))
	w.ok("deploy", w.file("b.yaml", fmt.Sprintf(lookedAtJob, topic, "WHERE ms <> 2")), "--until", "verified")
	for _, args := range [][]string{
		{"query", "clicks"},
		{"diff", "clicks"},
		{"status", "clicks"},
		{"history", "clicks"},
		{"check", "a.yaml"},
		{"plan", "b.yaml"},
		{"deadletter", "list", "clicks"},
		{"deadletter", "show", "clicks", topic + "/0@2"},
		{"verify", "clicks"},
		{"query", "clicks", "url=" + hostileText},
		{"query", "clicks", hostileText + "=1"},
		{"status", hostileText},
		{"deploy", hostileText},
		{"frob" + hostileText},
	} {
		for _, format := range []string{"table", "json", "jsonl"} {
			out := w.run(append(args, "-o", format)...)
			for _, text := range []string{out.stdout, out.stderr} {
				if i := strings.IndexFunc(text, job.Steers); i >= 0 {
					t.Errorf("%q -o %s prints a control character: %q", args, format, text[max(0, i-30):min(len(text), i+30)])
				}
			}
		}
	}
	if out := w.ok("deadletter", "show", "clicks", topic+"/0@2"); !strings.Contains(out, "not json x·[2J") {
		t.Errorf("the record is not shown: %s", out)
	}
	var rows []map[string]any
	w.into(&rows, "query", "clicks", "-o", "json")
	found := false
	for _, r := range rows {
		found = found || r["url"] == hostileText
	}
	if !found {
		t.Errorf("JSON lost the characters: %v", rows)
	}
}
