package reprocess_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/plan"
)

// gate is a hook that refuses until it is opened. It is guarded by mu.
type gate struct {
	mu    sync.Mutex
	open  bool
	asked []job.HookFacts
}

func (g *gate) Wants(on job.HookEvent, _ job.Name) bool { return on == job.HookBeforePromote }

func (g *gate) Before(_ context.Context, f job.HookFacts) ([]job.HookOutcome, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, f)
	if g.open {
		return []job.HookOutcome{{Hook: "gate", OK: true, Output: "fine", Tries: 1}}, nil
	}
	return []job.HookOutcome{{Hook: "gate", Reason: "failed with exit status 1", Output: "a freeze is on", Tries: 1}}, nil
}

func (g *gate) unlock() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = true
}

func TestAHookMayRefuseAPromote(t *testing.T) {
	w := newWorld(t, 10)
	g := &gate{open: true}
	w.hooks = g
	w.run(1, nil)
	w.finish(w.stage("aaa").Deployment, "", job.ExitOK)
	g.mu.Lock()
	g.open, g.asked = false, nil
	g.mu.Unlock()

	// A deployment that promotes itself waits for a person, with the reason.
	second := w.stage("bbb", func(s *plan.Staging) { s.Promote, s.GitRevision = job.PromoteAuto, "abc" })
	d := w.finish(second.Deployment, "", job.ExitChecks)
	if want := "counts/v2 is not promoted: hook gate refused: failed with exit status 1: a freeze is on"; d.Message != want || w.live() != "v1" {
		t.Errorf("live %s, %q", w.live(), d.Message)
	}
	// A person's promote is refused too, and goes through once the hook agrees.
	if a := w.ask(2, ledger.Promote, ledger.Args{}); a.Code != job.ExitChecks || !strings.Contains(a.Next, "kappactl promote counts v2") {
		t.Errorf("%+v", a)
	}
	g.unlock()
	w.must(2, ledger.Promote, ledger.Args{})
	if w.live() != "v2" {
		t.Errorf("live is %s", w.live())
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.asked) != 3 { // once an act, however often its flip was tried
		t.Fatalf("asked %d times", len(g.asked))
	}
	f := g.asked[0]
	if f.Job != "counts" || f.Version != "v2" || f.Previous == nil || *f.Previous != "v1" || *f.Deployment != second.Deployment || f.GitRevision != "abc" || f.By != "ann" || f.ID == 0 {
		t.Errorf("%+v", f)
	}
	kinds := map[ledger.EventKind]int{}
	events, err := w.store.History(t.Context(), "counts", nil, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		kinds[e.Kind]++
		if e.Kind == "hook_failed" && !strings.Contains(string(e.Detail), "a freeze is on") {
			t.Errorf("its output is not kept: %s", e.Detail)
		}
	}
	if kinds["before_promote"] != 4 || kinds["hook_failed"] != 2 || kinds["hook"] != 2 {
		t.Errorf("history: %v", kinds)
	}
}

// TestHooksAreAskedOnlyWhenAPromoteIsAboutToHappen holds a version back, verified but with nothing known of it, at every try of a minute.
func TestHooksAreAskedOnlyWhenAPromoteIsAboutToHappen(t *testing.T) {
	w := newWorld(t, 10)
	w.config.PromoteDeadline = 300 * time.Millisecond
	g := &gate{open: true}
	w.hooks = g
	w.run(1, nil)
	w.finish(w.stage("aaa").Deployment, "", job.ExitOK)
	w.finish(w.stage("bbb").Deployment, "", job.ExitOK)
	w.await("the second verified", func() bool { return w.version(2).Phase == job.Verified })
	g.mu.Lock()
	g.asked = nil
	g.mu.Unlock()
	w.brokers.set(func(b *brokers) { b.err = errors.New("away") })
	w.await("nothing known of the second", func() bool { return w.version(2).Verdict == job.Unknown })
	if a := w.ask(2, ledger.Promote, ledger.Args{}); a.Code != job.ExitNotCaughtUp || !strings.Contains(a.Text(), "gave up") {
		t.Errorf("%+v", a)
	}
	if n := g.times(); n != 0 {
		t.Errorf("asked %d times about a promote that could not happen", n)
	}
	w.brokers.set(func(b *brokers) { b.err = nil })
	w.await("the second ready", func() bool { v := w.version(2); return v.Verdict == job.Ready && v.Phase == job.Verified })
	w.must(2, ledger.Promote, ledger.Args{})
	if n := g.times(); n != 1 {
		t.Errorf("asked %d times, want once", n)
	}
}

func (g *gate) times() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.asked)
}
