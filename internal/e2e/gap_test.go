package e2e_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

var suggestedGap = regexp.MustCompile(`--accept-gap (\S+?:\d+-\d+)`)

// TestAnAcceptedGapIsLostOnceAndForAll: a version that the log has left behind stands still until a person accepts the very range
// that is gone; then it goes on behind it, and what it serves is equal to the log without that range.
func TestAnAcceptedGapIsLostOnceAndForAll(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		t.Parallel()
		w := newWorld(t, brokers)
		t.Run("live", func(t *testing.T) { w.t = t; w.gapLive() })
		t.Run("replay", func(t *testing.T) { w.t = t; w.gapInReplay() })
	})
}

func (w *world) produceHits(topic string, from, n int) {
	kafkatest.ProduceMany(w.t, w.brokers, n, func(i int) *kgo.Record {
		return &kgo.Record{Topic: topic, Value: fmt.Appendf(nil, `{"url":"/%d","ms":%d}`, (from+i)%7, from+i)}
	})
}

func (w *world) gapLive() {
	topic := kafkatest.Name("gaplive")
	kafkatest.Topic(w.t, w.brokers, topic, 1, nil)
	w.produceHits(topic, 0, 100)
	a := w.serve()
	w.ok("deploy", w.file("live.yaml", fmt.Sprintf(lookedAtJob, topic, "")))
	a.stop()
	w.produceHits(topic, 100, 100)
	kafkatest.DeleteRecords(w.t, w.brokers, topic, 0, 150)
	w.serve()
	gap := topic + "/0:100-150"
	w.until("status names the gap", func() bool { return strings.Contains(w.ok("status", "clicks", "-o", "json"), "[100,150)") })

	wrong := w.code(6, "resume", "clicks", "v1", "--accept-gap", topic+"/0:100-160")
	if !strings.Contains(wrong.stderr, "has no gap") {
		w.t.Error(wrong.stderr)
	}
	toldOf(w.t, w.run("status", "clicks", "v1", "--exit-code"), recordsGone, "while following")
	w.code(2, "resume", "clicks", "--accept-gap", gap)
	w.ok("resume", "clicks", "v1", "--accept-gap", gap)
	w.code(6, "resume", "clicks", "v1", "--accept-gap", gap)
	w.produceHits(topic, 200, 10)
	kafkatest.Until(w.t, "the version goes on", func() bool { return w.sum("SELECT sum(views)::bigint FROM clicks") == 160 })
	if out := w.ok("history", "clicks"); strings.Count(out, "gap_accepted") != 1 {
		w.t.Error(out)
	}
	// What the version covered before the gap is no longer in the log either, and verify says so.
	if o := w.code(7, "verify", "clicks"); !strings.Contains(o.stderr, "[0,150) is gone") {
		w.t.Error(o.stderr)
	}
}

func (w *world) gapInReplay() {
	topic := kafkatest.Name("gapreplay")
	kafkatest.Topic(w.t, w.brokers, topic, 1, nil)
	w.produceHits(topic, 0, 20_000)
	text := strings.NewReplacer("job: clicks", "job: slow", "public.clicks", "public.slow").Replace(fmt.Sprintf(lookedAtJob, topic, "")) + "replay: {max_rate: 20kB/s}\n"
	a := w.serve()
	w.ok("deploy", w.file("slow.yaml", text), "--detach")
	kafkatest.Until(w.t, "the replay has begun", func() bool {
		return w.sum("SELECT count(*) FROM kappactl.segment WHERE job = 'slow'") > 0
	})
	a.kill()
	kafkatest.DeleteRecords(w.t, w.brokers, topic, 0, 15_000)
	w.serve()
	waited := w.run("wait", "slow", "v1", "--for", "verified", "--timeout", "3m")
	toldOf(w.t, waited, recordsGone, "in mid replay")
	m := suggestedGap.FindStringSubmatch(waited.stderr)
	if m == nil {
		w.t.Fatalf("no gap is named: %s", waited.stderr)
	}
	w.exec("UPDATE kappactl.version SET spec = jsonb_set(spec, '{replay,max_rate}', '0') WHERE job = 'slow'")
	w.ok("resume", "slow", "v1", "--accept-gap", m[1])
	w.ok("wait", "slow", "v1", "--for", "live", "--timeout", "3m")
	if n := w.sum("SELECT sum(views)::bigint FROM slow"); n != 5000 {
		w.t.Errorf("%d records are counted, want those that were left: 5000", n)
	}
}

func (w *world) sum(sql string) (n int64) {
	w.t.Helper()
	var v *int64
	if err := w.pool.QueryRow(w.t.Context(), sql).Scan(&v); err != nil {
		w.t.Fatalf("%v: %s", err, sql)
	}
	if v == nil {
		return 0
	}
	return *v
}
