package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

// TestHooksOfARealAgent takes a job through its life under an agent whose settings name a gate, a diary and an address.
func TestHooksOfARealAgent(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Fake(t)
	w, topic := newWorld(t, brokers), kafkatest.Name("clicks")
	kafkatest.Topic(t, brokers, topic, 4, nil)
	produceClicks(t, brokers, topic, 0, 2_000)
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
	if !strings.Contains(o.stderr, "error: clicks/v1 is not promoted: hook gate refused: it ended with exit status 1\nnext: kappactl history clicks") {
		t.Errorf("stderr: %s", o.stderr)
	}
	if h := w.ok("history", "clicks", "-o", "json"); !strings.Contains(h, "a freeze is on") {
		t.Errorf("what the gate printed is not in the history: %s", h)
	}
	w.file("open", "")
	w.ok("promote", "clicks", "v1")
	w.ok("deploy", w.file("v2.yaml", fmt.Sprintf(clicksJob, topic, 100)), "--promote", "auto")
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
