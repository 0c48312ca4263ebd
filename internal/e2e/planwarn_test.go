package e2e_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

// TestPlanSaysWhatReadersWouldLoseAndWhatRetentionDeletesFirst: before a deploy says so, and as it says it.
func TestPlanSaysWhatReadersWouldLoseAndWhatRetentionDeletesFirst(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Fake(t)
	w := newWorld(t, brokers)
	topic := kafkatest.Name("clicks")
	kafkatest.Topic(t, brokers, topic, 4, map[string]string{"retention.ms": fmt.Sprint((20 * time.Minute).Milliseconds())})
	produceClicks(t, brokers, topic, 0, 8000)
	w.serve()

	// Twenty minutes are enough for a replay of a moment, and not for one of nine: it may turn out slower.
	quick, slow := fmt.Sprintf(clicksJob, topic, 0), fmt.Sprintf(clicksJob, topic, 0)+"replay: {max_rate: 1kB/s}\n"
	if out := w.ok("plan", w.file("quick.yaml", quick)); strings.Contains(out, "warning") || !strings.Contains(out, "kept for 20m; what is replayed may be deleted from 20") {
		t.Errorf("plan of a quick replay:\n%s", out)
	}
	if out := w.ok("plan", w.file("slow.yaml", slow)); !regexp.MustCompile(`warning\tretention of topic `+topic+` may begin to delete in 1[345]m\S* what is replayed, and the replay takes about`).MatchString(out) ||
		!strings.Contains(out, "raise retention.ms, replay.max_rate or the workers") {
		t.Errorf("plan of a slow replay:\n%s", out)
	}

	// Records over which the query fails, or PostgreSQL SQL that is wrong, are seen in the sample.
	kafkatest.Produce(t, brokers, topic, 3, `{"user":"nobody","page":1,"ts":"2026-01-01T00:00:00Z","ms":5000}`)
	fails := strings.Replace(quick, "max(ms) AS longest", `max(CASE WHEN ms = 5000 THEN CAST("user" AS BIGINT) ELSE ms END) AS longest`, 1)
	if out := w.ok("plan", w.file("fails.yaml", fails)); !strings.Contains(out, "dead letters\t1; the first: Conversion Error: Could not convert") || strings.Contains(out, "warning") {
		t.Errorf("plan of a query that fails on a record:\n%s", out)
	}
	stops := strings.Replace(fails, "  format: json\n", "  format: json\n  on_error: fail\n", 1)
	if out := w.ok("plan", w.file("stops.yaml", stops)); !strings.Contains(out, "warning\tabout 1 record cannot be processed, and on_error: fail stops at the first: Conversion Error") {
		t.Errorf("plan of a job that stops at errors:\n%s", out)
	}
	if out := w.code(2, "plan", w.file("wrong.yaml", strings.Replace(quick, "  view: public", "  where: nothing > 1\n  view: public", 1))).stdout; !strings.Contains(out, "refused\tserve.columns or serve.where (PostgreSQL SQL): column \"nothing\" does not exist") {
		t.Errorf("plan of a condition that is wrong:\n%s", out)
	}

	// The log begins later than when v1 read it.
	w.ok("deploy", w.file("quick.yaml", quick))
	kafkatest.DeleteRecords(t, brokers, topic, 0, 400)
	v2 := w.file("v2.yaml", fmt.Sprintf(clicksJob, topic, 100))
	planned := w.code(7, "plan", v2)
	deployed := w.code(7, "deploy", v2)
	_, said, _ := strings.Cut(deployed.stderr, "error: ")
	cause, next, _ := strings.Cut(said, "\nnext: ")
	for _, line := range append(strings.Split(cause, "\n"), strings.TrimSpace(next)) {
		if !strings.Contains(planned.stdout, strings.TrimSpace(line)) {
			t.Errorf("deploy says %q, plan says:\n%s", line, planned.stdout)
		}
	}
	if !strings.Contains(cause, topic+"/0: v1 begins at offset 0, v2 at 400 (400 offsets later)") || !strings.Contains(next, "--accept-shorter-history=") {
		t.Errorf("deploy: %s", deployed.stderr)
	}
	var p struct {
		ExitCode int `json:"exit_code"`
		Lost     []struct {
			Topic         string `json:"topic"`
			Partition     int    `json:"partition"`
			LiveFrom      int64  `json:"live_from"`
			CandidateFrom int64  `json:"candidate_from"`
		} `json:"lost"`
	}
	w.decode(&p, w.code(7, "plan", v2, "-o", "json").stdout)
	if p.ExitCode != 7 || len(p.Lost) != 1 || p.Lost[0].Topic != topic || p.Lost[0].LiveFrom != 0 || p.Lost[0].CandidateFrom != 400 {
		t.Errorf("%+v", p)
	}
}
