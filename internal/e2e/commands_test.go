package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

const lookedAtJob = `job: clicks
source:
  topics: [%s]
  columns: {url: text, ms: bigint}
  on_error: {dead_letter: {max: 50%%}}
query: SELECT url, count(*) AS views, sum(ms) AS total FROM source %s GROUP BY url
serve: {view: public.clicks}
ready: {stable_for: 0s}
`

// TestLookingAtAJob takes one job with two versions and a few records that cannot be processed, and looks at it in every way.
func TestLookingAtAJob(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Fake(t)
	w := newWorld(t, brokers)
	w.serve()
	topic := kafkatest.Name("clicks")
	kafkatest.Topic(t, brokers, topic, 2, nil)
	kafkatest.ProduceMany(t, brokers, 1000, func(i int) *kgo.Record {
		return &kgo.Record{Topic: topic, Partition: int32(i % 2), Value: fmt.Appendf(nil, `{"url":"/%d","ms":%d}`, i%20, i)}
	})
	long := `{"url":"/x","ms":"` + strings.Repeat("9", 6000) + `"}`
	kafkatest.Produce(t, brokers, topic, 0, `{"url":"/x","ms":"seven"}`, long, "not json")
	v1 := w.file("v1.yaml", fmt.Sprintf(lookedAtJob, topic, ""))
	v2 := w.file("v2.yaml", fmt.Sprintf(lookedAtJob, topic, "WHERE url <> '/3' AND ms < 990"))
	w.ok("deploy", v1)
	w.ok("deploy", v2)

	t.Run("query", func(t *testing.T) { w.queries() })
	t.Run("diff", func(t *testing.T) { w.diffs() })
	t.Run("deadletter", func(t *testing.T) { w.deadLetters(topic) })
	t.Run("output", func(t *testing.T) { w.outputs(topic) })
	t.Run("pin and history", func(t *testing.T) { w.pins() })
	t.Run("completion", func(t *testing.T) {
		w.completes([]string{"clicks\tpublic.clicks"}, "status", "")
		w.completes([]string{"v2\t"}, "diff", "clicks", "") // v1 is retired
		w.completes([]string{"v1\t", "v2\t"}, "history", "clicks", "")
	})
}

// completes waits until the completion of a command line lists these words and no others. It lists nothing when the database does not
// answer in time, as on a loaded machine.
func (w *world) completes(words []string, line ...string) {
	w.t.Helper()
	w.until("the completion of "+strings.Join(line, " ")+" lists something", func() bool {
		out := w.ok(append([]string{"__complete"}, line...)...)
		if strings.HasPrefix(out, ":") { // the directive alone
			return false
		}
		for _, word := range words {
			if !strings.Contains(out, word) {
				w.t.Errorf("%s lacks %q", out, word)
			}
		}
		if strings.Count(out, "\n") != len(words)+1 {
			w.t.Errorf("%s is not %q and the directive", out, words)
		}
		return true
	})
}

func (w *world) queries() {
	if out := w.ok("query", "clicks", "url=/3"); out != "url\tviews\ttotal\n/3\t50\t24650\n" {
		w.t.Error(out)
	}
	if out := w.ok("query", "clicks", "views=50", "url=/4", "-o", "csv"); out != "url,views,total\n/4,50,24700\n" {
		w.t.Error(out)
	}
	var rows []map[string]any
	out := w.run("query", "clicks", "--limit", "3", "-o", "json")
	if err := json.Unmarshal([]byte(out.stdout), &rows); err != nil || len(rows) != 3 || !strings.Contains(out.stderr, "only the first 3 rows") {
		w.t.Errorf("%v %s %s", err, out.stdout, out.stderr)
	}
	out = w.run("query", "clicks", "--limit", "4")
	if out.stdout != "url\tviews\ttotal\n/0\t50\t24500\n/1\t50\t24550\n/10\t50\t25000\n/11\t50\t25050\n" {
		w.t.Errorf("rows are not in the order of their key: %s", out.stdout)
	}
	if o := w.code(2, "query", "clicks", "views=many"); !strings.Contains(o.stderr, "bigint") {
		w.t.Error(o.stderr)
	}
	if o := w.code(2, "query", "clicks", "nothing=1"); !strings.Contains(o.stderr, "url, views, total") {
		w.t.Error(o.stderr)
	}
	w.code(2, "query", "none")
}

func (w *world) diffs() {
	var d struct {
		A        string           `json:"a"`
		B        string           `json:"b"`
		OnlyA    int              `json:"only_a"`
		OnlyB    int              `json:"only_b"`
		Changed  int              `json:"changed"`
		Same     int              `json:"same"`
		Examples []map[string]any `json:"examples"`
		Offsets  map[string]int64 `json:"offsets"`
	}
	w.into(&d, "diff", "clicks")
	if d.A != "v1" || d.B != "v2" || d.OnlyA != 1 || d.OnlyB != 0 || d.Changed != 10 || d.Same != 9 || len(d.Examples) != 10 || len(d.Offsets) != 2 {
		w.t.Errorf("%+v", d)
	}
	if o := w.code(5, "diff", "clicks", "v2", "v1", "--max-changed", "1%"); !strings.Contains(o.stdout, "only in v1\t1\n") || !strings.Contains(o.stderr, "55% of the keys differ") {
		w.t.Errorf("%s %s", o.stdout, o.stderr)
	}
	w.ok("diff", "clicks", "v1", "v1", "--max-changed", "0%")
	w.code(2, "diff", "clicks", "v1", "v9")
}

func (w *world) deadLetters(topic string) {
	var letters []struct {
		Record string `json:"record"`
		Reason string `json:"reason"`
		Whole  bool   `json:"whole"`
	}
	w.into(&letters, "deadletter", "list", "clicks")
	if len(letters) != 3 || letters[0].Record != topic+"/0@500" || letters[0].Reason != "wrong_type" || letters[1].Whole || letters[2].Reason != "not_json" {
		w.t.Fatalf("%+v", letters)
	}
	if out := w.ok("deadletter", "show", "clicks", topic+"/0@500"); !strings.Contains(out, `"ms":"seven"`) {
		w.t.Error(out)
	}
	w.code(2, "deadletter", "show", "clicks", topic+"/0@1")
	w.code(2, "deadletter", "show", "clicks", "nonsense")
	var r struct {
		Passes  int `json:"passes"`
		Fails   int `json:"fails"`
		Unknown int `json:"unknown"`
	}
	again := w.code(5, "deadletter", "retry", "clicks", "-o", "json")
	if err := json.Unmarshal([]byte(again.stdout), &r); err != nil || r.Passes != 0 || r.Fails != 3 {
		w.t.Errorf("%v %s", err, again.stdout)
	}
	// A file that takes ms as text passes what is JSON, also the value of which only the first bytes are kept.
	fixed := strings.NewReplacer("ms: bigint", "ms: text", "sum(ms) AS total", "max(ms) AS total").Replace(fmt.Sprintf(lookedAtJob, topic, ""))
	again = w.code(5, "deadletter", "retry", "clicks", "--file", w.file("fixed.yaml", fixed), "-o", "json")
	if err := json.Unmarshal([]byte(again.stdout), &r); err != nil || r.Passes != 2 || r.Fails != 1 || r.Unknown != 0 {
		w.t.Errorf("%v %s", err, again.stdout)
	}
	w.equal("clicks")
}

func (w *world) pins() {
	w.ok("promote", "clicks", "v2")
	if out := w.ok("pin", "clicks"); !strings.Contains(out, "clicks/v1 is kept") {
		w.t.Error(out)
	}
	if o := w.code(6, "retire", "clicks", "v1", "--now", "--yes"); !strings.Contains(o.stderr, "pinned") {
		w.t.Error(o.stderr)
	}
	if out := w.ok("pin", "clicks", "v1"); !strings.Contains(out, "is already kept") {
		w.t.Error(out)
	}
	w.ok("unpin", "clicks")
	if o := w.code(6, "retire", "clicks", "v1", "--yes"); !strings.Contains(o.stderr, "next: kappactl retire clicks v1 --now --yes") {
		w.t.Errorf("the next command would ask, where nobody answers: %s", o.stderr)
	}
	w.ok("retire", "clicks", "v1", "--now", "--yes")
	w.code(6, "pin", "clicks", "v1")
	var events []struct {
		Kind    string  `json:"kind"`
		Version *string `json:"version"`
		By      string  `json:"by"`
	}
	w.into(&events, "history", "clicks")
	kinds := map[string]int{}
	for _, e := range events {
		kinds[e.Kind]++
	}
	if kinds["deploy"] != 2 || kinds["pin"] != 1 || kinds["unpin"] != 1 || kinds["retire"] == 0 {
		w.t.Errorf("%v", kinds)
	}
	if out := w.ok("history", "clicks", "v1", "--limit", "2"); strings.Count(out, "\n") != 3 {
		w.t.Error(out)
	}
	w.code(2, "history", "none")
}
