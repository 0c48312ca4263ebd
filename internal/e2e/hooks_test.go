package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/report"
)

// TestHooksOfARealAgent takes a job through its life under an agent whose settings name a gate, a diary and an address, and has a
// report written.
func TestHooksOfARealAgent(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Fake(t)
	w, topic := newWorld(t, brokers), clicksTopic(t, brokers, 2_000)
	posts := make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		posts <- r.Header.Get("X-Kappactl-Event") + " " + r.Header.Get("X-Kappactl-Signature")[:7]
	}))
	t.Cleanup(receiver.Close)
	w.file("secret", "sesame\n")
	w.file("kappactl.yaml", fmt.Sprintf(`contexts: {dev: {}}
agent:
  hooks:
    - {name: gate, on: [before_promote], command: [sh, -c, "echo a freeze is on; test -e open"]}
    - {name: diary, on: [stage, caught_up, after_promote, rollback, retire], command: [sh, -c, 'echo "$KAPPACTL_EVENT $KAPPACTL_VERSION $KAPPACTL_PREVIOUS" >> diary']}
  webhooks: [{name: chat, on: [after_promote], url: "%s", secret_file: secret}]
`, receiver.URL))
	w.serve()
	o := w.code(5, "deploy", w.file("v1.yaml", fmt.Sprintf(clicksJob, topic, 0)))
	if !strings.Contains(o.stderr, "error: clicks/v1 is not promoted: hook gate refused: failed with exit status 1: a freeze is on\nnext: kappactl history clicks") {
		t.Errorf("stderr: %s", o.stderr)
	}
	if h := w.ok("history", "clicks", "-o", "json"); !strings.Contains(h, "a freeze is on") {
		t.Errorf("what the gate printed is not in the history: %s", h)
	}
	w.file("open", "")
	w.ok("promote", "clicks", "v1")
	out := w.ok("deploy", w.file("v2.yaml", fmt.Sprintf(clicksJob, topic, 100)), "--promote", "auto", "--report", "reports")
	if !strings.Contains(out, "\nreport: reports/clicks-v2-deployment-2.html\n") {
		t.Errorf("no path of the report in %q", out)
	}
	w.reported("reports/clicks-v2-deployment-2", topic)
	w.ok("rollback", "clicks")
	w.ok("retire", "clicks", "v2", "--now", "--yes")
	want := "stage v1 \ncaught_up v1 \nafter_promote v1 \nstage v2 v1\ncaught_up v2 v1\nafter_promote v2 v1\nrollback v1 v2\nretire v2 v1\n"
	var diary []byte
	kafkatest.Until(t, "the diary is written", func() bool {
		diary, _ = os.ReadFile(filepath.Join(w.dir, "diary"))
		return len(diary) >= len(want)
	})
	for line := range strings.Lines(want) { // deliveries run beside each other, in whatever order
		if !strings.Contains(string(diary), line) {
			t.Errorf("no %q in the diary:\n%s", line, diary)
		}
	}
	for range 2 {
		if got := <-posts; got != "after_promote sha256=" {
			t.Errorf("posted: %q", got)
		}
	}
}

// reported looks into a report that deploy wrote, and writes it again.
func (w *world) reported(base, topic string) {
	w.t.Helper()
	read := func(path string) report.Report {
		text, err := os.ReadFile(filepath.Join(w.dir, path))
		if err != nil {
			w.t.Fatal(err)
		}
		var r report.Report
		if err := json.Unmarshal(text, &r); err != nil {
			w.t.Fatalf("%v in %s", err, text)
		}
		return r
	}
	r := read(base + ".json")
	if r.Version != "v2" || r.Previous == nil || *r.Previous != "v1" || r.Records != 2_000 || r.By == "" || r.Timings.Replay == nil ||
		r.Plan.Offsets != 2_000 || len(r.Plan.Changes) == 0 || len(r.Events) < 4 || !strings.Contains(r.File, topic) {
		w.t.Errorf("report: %+v", r)
	}
	if len(r.Lag) < 2 || r.Lag[len(r.Lag)-1].LagRecords == nil {
		w.t.Errorf("lag: %+v", r.Lag)
	}
	page, err := os.ReadFile(filepath.Join(w.dir, base+".html"))
	if err != nil || !strings.Contains(string(page), "<svg") {
		w.t.Errorf("page: %v: %s", err, page)
	}
	w.ok("report", "clicks", "v2", "--dir", "again")
	if again := read("again/clicks-v2-deployment-2.json"); again.Deployment != r.Deployment {
		w.t.Errorf("again: %+v", again)
	}
}

// TestAWebhookIsToldAlsoWhenItsAgentIsKilled kills the agent with kill -9 while the address has the event and has not answered: the next
// agent tells it again, under the same id.
func TestAWebhookIsToldAlsoWhenItsAgentIsKilled(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Fake(t)
	w, topic := newWorld(t, brokers), clicksTopic(t, brokers, 100)
	type post struct{ id, event, body string }
	posts := make(chan post, 10)
	killed := make(chan struct{})
	answer := sync.OnceFunc(func() { close(killed) })
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		posts <- post{r.Header.Get("X-Kappactl-Id"), r.Header.Get("X-Kappactl-Event"), string(body)}
		<-killed
	}))
	t.Cleanup(receiver.Close)
	t.Cleanup(answer)
	w.file("kappactl.yaml", fmt.Sprintf("contexts: {dev: {}}\nagent: {webhooks: [{name: chat, on: [after_promote], timeout: 1s, url: %q}]}\n", receiver.URL))
	first := w.serve()
	w.ok("deploy", w.file("v1.yaml", fmt.Sprintf(clicksJob, topic, 0)))
	told := <-posts
	first.kill()
	answer()
	w.serve()
	if again := <-posts; again != told || told.event != "after_promote" || told.id == "" {
		t.Errorf("told %+v, then %+v", told, again)
	}
	kafkatest.Until(t, "the delivery is over", func() bool {
		var over bool
		if err := w.pool.QueryRow(t.Context(), `SELECT bool_and(state = 'done' AND tries > 1) FROM kappactl.delivery`).Scan(&over); err != nil {
			t.Fatal(err)
		}
		return over
	})
}
