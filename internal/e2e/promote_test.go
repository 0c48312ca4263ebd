package e2e_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

// verified is a world in which clicks v1 is live and v2 is verified, without an agent.
func verified(t *testing.T, brokers []string) (w *world, topic string) {
	t.Helper()
	w, topic = newWorld(t, brokers), clicksTopic(t, brokers, 20_000)
	a := w.serve()
	w.ok("deploy", w.file("v1.yaml", fmt.Sprintf(clicksJob, topic, 0)))
	w.ok("deploy", w.file("v2.yaml", fmt.Sprintf(clicksJob, topic, 100)))
	a.stop()
	return w, topic
}

// TestTwoPromotesAtOnceHaveOneWinner asks twice at the same time for different candidates.
func TestTwoPromotesAtOnceHaveOneWinner(t *testing.T) {
	t.Parallel()
	w, topic := verified(t, kafkatest.Fake(t))
	w.serve()
	w.serve()
	w.ok("deploy", w.file("v3.yaml", fmt.Sprintf(clicksJob, topic, 50)))
	codes := make(chan int, 2)
	for _, v := range []string{"v2", "v3"} {
		go func() { codes <- w.run("promote", "clicks", v).code }()
	}
	got := []int{<-codes, <-codes}
	slices.Sort(got)
	if !slices.Equal(got, []int{0, 6}) {
		t.Fatalf("the two promotes ended with %v, want one 0 and one 6", got)
	}
	w.equal("clicks")
}

// diesAt waits until the agent has killed itself at the point. The command may have its answer by then: that is written in the
// flip's own transaction. When the agent's next look falls between that commit and the point behind it, it ends the request, which
// is answered, and does not come to the point: then it is killed from here, at that place in the flip all the same.
func (a *agent) diesAt(point string, result chan outcome) {
	a.w.t.Helper()
	behind := point == "promote.flipped" || point == "promote.answered" // the commit
	select {
	case <-a.done:
		return
	case o := <-result:
		result <- o
		if o.code != 0 {
			a.w.t.Fatalf("no agent was killed at %s: %+v", point, o)
		}
	case <-time.After(4 * time.Minute):
		a.w.t.Fatalf("no agent was killed at %s, and no answer came", point)
	}
	patience := 3 * time.Minute
	if behind {
		patience = 5 * time.Second
	}
	select {
	case <-a.done:
	case <-time.After(patience):
		if !behind {
			a.w.t.Fatalf("no agent was killed at %s, though the command was done", point)
		}
		a.kill()
	}
}

// TestPromoteIsFinishedByAnotherAgent kills the controller at each step of a promote, a rollback and a retire.
func TestPromoteIsFinishedByAnotherAgent(t *testing.T) {
	t.Parallel()
	w, topic := verified(t, kafkatest.Fake(t))
	stopReading := w.keepReading("SELECT count(*), sum(clicks)::bigint FROM clicks_hourly")
	live := func() (v string) {
		if err := w.pool.QueryRow(t.Context(), `SELECT 'v' || live FROM kappactl.job`).Scan(&v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	finish := func(point string, args ...string) {
		t.Helper()
		doomed := w.serve("KAPPACTL_FAULT=" + point + ":1")
		doomed.awaitHeartbeat()
		result := make(chan outcome, 1)
		go func() { result <- w.run(append(args, "--timeout", "3m")...) }()
		doomed.diesAt(point, result)
		survivor := w.serve()
		if o := <-result; o.code != 0 {
			t.Fatalf("%v after a kill at %s: exit %d\n%s%s", args, point, o.code, o.stdout, o.stderr)
		}
		w.caughtUp("clicks")
		w.equalAfter(agentKilled, at(point), "clicks")
		survivor.stop()
	}
	stage := func(page int) {
		t.Helper()
		a := w.serve()
		w.ok("deploy", w.file("next.yaml", fmt.Sprintf(clicksJob, topic, page)))
		a.stop()
	}
	for i, point := range []string{"promote.held", "promote.checked", "promote.flipping", "promote.flipped", "promote.answered"} {
		candidate := fmt.Sprintf("v%d", 2+i)
		finish(point, "promote", "clicks", candidate)
		if live() != candidate {
			t.Fatalf("after a promote of %s with a kill at %s %s is live", candidate, point, live())
		}
		stage(20 + i)
	}
	finish("promote.flipped", "rollback", "clicks")
	if live() != "v5" {
		t.Fatalf("after the rollback %s is live, want v5", live())
	}
	finish("retire.marked", "retire", "clicks", "v6", "--now", "--yes")
	w.goneFrom("clicks", "v6")
	a := w.serve()
	w.code(6, "promote", "clicks", "v7") // staged when v6 was live, which it no longer is
	a.stop()
	stage(40)
	finish("promote.flipped", "promote", "clicks", "v8")
	finish("retire.dropped", "retire", "clicks", "v5", "--now", "--yes")
	w.goneFrom("clicks", "v5")
	if polls := stopReading(); polls < 20 {
		t.Errorf("the reader saw only %d answers", polls)
	}
}
