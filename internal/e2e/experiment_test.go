package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

// TestReadersAreSplitBetweenVersions starts an experiment between a live version and a candidate that lacks the pages
// below 100, does all that can be done to it, and ends it by a promote.
func TestReadersAreSplitBetweenVersions(t *testing.T) {
	t.Parallel()
	w, topic := verified(t, kafkatest.Fake(t))
	w.serve()
	docs := documented(w)
	says := func(code int, heading string, args ...string) string {
		t.Helper()
		o := w.code(code, append(args, "-o", "json")...)
		if code == 0 {
			p := printing{heading: heading, args: args}
			w.described(docs, p, w.one(p, o.stdout))
		}
		return o.stdout + o.stderr
	}
	rows := func(as string) int { // of page 7, which the candidate lacks
		t.Helper()
		var found []map[string]any
		w.into(&found, "query", "clicks", "page=7", "--as", as)
		return len(found)
	}
	says(6, "ab", "ab", "status", "clicks")
	says(0, "ab", "ab", "start", "clicks", "--dry-run")
	says(6, "ab", "ab", "stop", "clicks")
	says(0, "ab", "ab", "start", "clicks", "--weights", "v1=1,v2=0", "--assign", "sticky")
	w.exec(`SELECT kappactl.expose('clicks', 'ann')`)
	if rows("ann") == 0 || rows("ben") == 0 {
		t.Error("with all weight on v1 a subject does not read it")
	}
	says(0, "ab", "ab", "weights", "clicks", "--weights", "v1=0,v2=1")
	if rows("ann") == 0 || rows("ben") != 0 {
		t.Error("ann, who was recorded, reads v2, or ben, who was not, reads v1")
	}
	w.armsAreProtected(topic)

	says(0, "ab", "ab", "pause", "clicks")
	if rows("ben") == 0 {
		t.Error("during a pause ben does not read the control")
	}
	says(0, "ab", "ab", "resume", "clicks", "--accept", "it was nothing")
	if out := says(0, "ab", "ab", "status", "clicks"); !strings.Contains(out, `"running"`) || !strings.Contains(out, `"subjects": 1`) {
		t.Errorf("status: %s", out)
	}
	w.describedReport(docs)
	says(0, "ab", "ab", "forget", "clicks", "ann")
	if rows("ann") != 0 {
		t.Error("ann, who was forgotten, keeps her arm")
	}
	says(0, "promote", "ab", "promote", "clicks", "v2")
	if out := says(0, "ab", "ab", "status", "clicks"); !strings.Contains(out, "v2 became live") {
		t.Errorf("status: %s", out)
	}
	if got := strings.Count(says(0, "ab", "ab", "decisions", "clicks"), `"verdict"`); got != 5 {
		t.Errorf("%d decisions", got)
	}
	if n := w.sum(`SELECT count(*) FROM pg_class WHERE relname = 'clicks_hourly__arms'`); n != 0 {
		t.Error("the view of all arms is left")
	}
	w.equal("clicks")
	w.ok("rollback", "clicks")
	says(0, "ab", "ab", "start", "clicks", "--weights", "v1=0.5,v2=0.5")
	says(0, "ab", "ab", "stop", "clicks")
	w.ok("drop", "clicks", "--yes")
}

// armsAreProtected: each act that would take v1 or v2 from its readers is refused and names the way out.
func (w *world) armsAreProtected(topic string) {
	w.t.Helper()
	indexed := w.file("indexed.yaml", strings.Replace(fmt.Sprintf(clicksJob, topic, 0), "view: public.clicks_hourly\n", "view: public.clicks_hourly\n  indexes: [[clicks]]\n", 1))
	w.ok("deploy", w.file("v3.yaml", fmt.Sprintf(clicksJob, topic, 50)))
	for _, args := range [][]string{
		{"abort", "clicks", "v2"},
		{"pause", "clicks", "v2"},
		{"drop", "clicks", "--yes"},
		{"drop", "clicks", "--dry-run"},
		{"promote", "clicks", "v3"},
		{"deploy", indexed},
	} {
		if o := w.code(6, args...); !strings.Contains(o.stderr, "kappactl ab stop clicks") {
			w.t.Errorf("%v: %s", args, o.stderr)
		}
	}
	w.ok("abort", "clicks", "v3")
}

// describedReport writes the report of the experiment.
func (w *world) describedReport(docs map[string]map[string]bool) {
	w.t.Helper()
	dir := filepath.Join(w.t.TempDir(), "reports")
	p := printing{heading: "ab", args: []string{"ab", "report", "clicks", "--dir", dir, "-o", "json"}}
	o := w.code(0, p.args...)
	w.described(docs, p, w.one(p, o.stdout))
	for name, want := range map[string]string{"clicks-experiment-1.html": "<h1>clicks, run 1", "clicks-experiment-1.json": `"decisions"`} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(text), want) {
			w.t.Errorf("%s: %v, %.200s", name, err, text)
		}
	}
}
