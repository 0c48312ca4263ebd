package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

// withChecks is a clicks job of records from page on, with more checks.
func withChecks(topic string, page int, checks ...string) string {
	text := fmt.Sprintf(clicksJob, topic, page)
	return strings.Replace(text, "ready:", strings.Join(checks, "\n")+"\nready:", 1)
}

// checkSaid is what a check said, as status and deploy print it.
type checkSaid struct {
	Name     string
	Stage    string
	Outcome  string
	Detail   string
	Failures int
	Offsets  map[string]int64
	Diff     *struct {
		OnlyA    int `json:"only_a"`
		Same     int
		Examples []struct{ Kind string }
	}
}

func (w *world) said(name string, checks []checkSaid) checkSaid {
	w.t.Helper()
	for _, c := range checks {
		if c.Name == name {
			return c
		}
	}
	w.t.Fatalf("no check %q in %+v", name, checks)
	return checkSaid{}
}

// TestChecksKeepACandidateOutAndTakeALiveVersionBack deploys one that differs too much (exit 5, with examples), and one that a
// check finds wrong after the flip: the agent is killed inside the flip back, another one finishes it (exit 9), and readers see
// no error.
func TestChecksKeepACandidateOutAndTakeALiveVersionBack(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Fake(t)
	w, topic := newWorld(t, brokers), clicksTopic(t, brokers, 20_000)
	const closeToLive = `  - {name: close_to_live, diff: {max_changed: 1%, tolerance: {avg_ms: 0.1%}}, when: both, every: 1s}`
	a := w.serve()
	w.ok("deploy", w.file("v1.yaml", withChecks(topic, 0, closeToLive)))
	w.keptOut(topic, closeToLive)
	a.stop()
	w.takenBack(topic, closeToLive)
}

func (w *world) keptOut(topic, closeToLive string) {
	t := w.t
	t.Helper()
	path := w.file("v2.yaml", withChecks(topic, 100, closeToLive))
	w.ok("plan", path, "--quick")
	o := w.code(5, "deploy", path, "--promote", "auto", "--output", "json")
	for _, want := range []string{`check "close_to_live": fail: 0 keys changed, `, "only in v1", "allowed 1%", `[0, "2026-01-01T00:00:00+00:00"] only in v1: {"hour": `, "next: kappactl diff clicks v1 v2"} {
		if !strings.Contains(o.stderr, want) {
			t.Errorf("no %q in %s", want, o.stderr)
		}
	}
	var d struct{ Checks []checkSaid }
	if err := json.Unmarshal([]byte(o.stdout), &d); err != nil {
		t.Fatalf("%v in %s", err, o.stdout)
	}
	c := w.said("close_to_live", d.Checks)
	if c.Outcome != "fail" || c.Stage != "before" || c.Diff == nil || c.Diff.OnlyA < 5000 || len(c.Diff.Examples) != 10 || len(c.Offsets) != 4 {
		t.Errorf("%+v", c)
	}
	if o := w.code(5, "promote", "clicks", "v2"); !strings.Contains(o.stderr, `check "close_to_live": fail`) {
		t.Errorf("promote: %s", o.stderr)
	}
	w.ok("abort", "clicks", "v2")
}

func (w *world) takenBack(topic, closeToLive string) {
	t := w.t
	t.Helper()
	doomed := w.serve("KAPPACTL_FAULT=promote.flipping:2") // its first flip is the promote
	doomed.awaitHeartbeat()
	path := w.file("v3.yaml", withChecks(topic, -1, closeToLive, `  - {name: not_too_many, sql: "SELECT sum(clicks) <= 20000 FROM live", when: after, every: 1s}`))
	reader := w.keepReading("SELECT count(*), sum(clicks)::bigint FROM clicks_hourly")
	settled := make(chan outcome, 1)
	go func() { settled <- w.run("deploy", path, "--until", "settled", "--output", "json") }()
	status := func() []checkSaid {
		var s struct {
			Versions []struct {
				Version string
				Checks  []checkSaid
			}
		}
		w.into(&s, "status", "clicks")
		for _, v := range s.Versions {
			if v.Version == "v3" {
				return v.Checks
			}
		}
		return nil
	}
	w.until("the checks pass after the flip", func() bool {
		passed := 0
		for _, c := range status() {
			if c.Stage == "after" && c.Outcome == "pass" {
				passed++
			}
		}
		return passed == 2
	})
	produceClicks(t, w.brokers, topic, 20_000, 100)
	<-doomed.done
	w.serve()
	o := <-settled
	if o.code != 9 || !strings.Contains(o.stderr, `rolled back to clicks/v1: check "not_too_many" failed twice in a row: it returned false`) {
		t.Fatalf("deploy --until settled: exit %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	if c := w.said("not_too_many", status()); c.Failures < 2 || c.Outcome != "fail" {
		t.Errorf("%+v", c)
	}
	w.code(9, "wait", "clicks", "v3", "--for", "settled")
	w.caughtUp("clicks")
	if n := reader(); n < 20 {
		t.Errorf("the reader saw only %d answers", n)
	}
	w.equal("clicks")
	w.code(6, "deploy", path)
}
