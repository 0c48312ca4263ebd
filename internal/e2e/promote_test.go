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
	w, topic = newWorld(t, brokers), kafkatest.Name("clicks")
	kafkatest.Topic(t, brokers, topic, 4, nil)
	produceClicks(t, brokers, topic, 0, 20_000)
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

// TestPromoteAndDeployAreFinishedByAnotherAgent kills the controller at each step of a promote, a rollback and a retire.
func TestPromoteIsFinishedByAnotherAgent(t *testing.T) {
	t.Parallel()
	w, _ := verified(t, kafkatest.Fake(t))
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
		result := make(chan outcome, 1)
		go func() { result <- w.run(append(args, "--wait-agent", "30s", "--timeout", "90s")...) }()
		select {
		case <-doomed.done:
		case <-time.After(60 * time.Second):
			t.Fatalf("no agent was killed at %s", point)
		}
		survivor := w.serve()
		if o := <-result; o.code != 0 {
			t.Fatalf("%v after a kill at %s: exit %d\n%s%s", args, point, o.code, o.stdout, o.stderr)
		}
		w.caughtUp("clicks")
		w.equal("clicks")
		survivor.stop()
	}
	for _, point := range []string{"promote.held", "promote.checked", "promote.flipping", "promote.flipped", "promote.answered"} {
		finish(point, "promote", "clicks", "v2")
		if live() != "v2" {
			t.Fatalf("after promote with a kill at %s %s is live", point, live())
		}
		a := w.serve()
		w.ok("rollback", "clicks")
		if live() != "v1" {
			t.Fatalf("after rollback %s is live", live())
		}
		a.stop()
	}
	for _, point := range []string{"retire.marked", "retire.dropped"} {
		a := w.serve()
		if live() == "v1" {
			w.ok("promote", "clicks", "v2")
		}
		a.stop()
		finish(point, "retire", "clicks", "v1", "--now", "--yes")
		w.goneFrom("clicks", "v1")
		break // v1 is gone: the second point is in the kill test of reprocess
	}
	if polls := stopReading(); polls < 20 {
		t.Errorf("the reader saw only %d answers", polls)
	}
}
