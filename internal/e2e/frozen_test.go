package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/faultpoint"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/reprocess"
)

// frozenAt are the steps at which an agent stands still, long enough for another to take over, and then goes on.
var frozenAt = []string{
	faultpoint.SegmentReading, faultpoint.SegmentCopying, faultpoint.SegmentBeforeCommit, reprocess.FaultDeployFilled,
	faultpoint.LiveBeforeCommit, reprocess.FaultPromoteHeld, reprocess.FaultPromoteFlipping,
}

// TestAFrozenAgentIsReplaced freezes an agent in mid step (SIGSTOP), lets another finish the work, and lets the first go on.
func TestAFrozenAgentIsReplaced(t *testing.T) { // R07
	t.Parallel()
	w := newWorld(t, kafkatest.Fake(t))
	topic := kafkatest.Name("clicks")
	kafkatest.Topic(t, w.brokers, topic, 4, nil)
	total := 2000
	produceClicks(t, w.brokers, topic, 0, total)
	for i, point := range frozenAt {
		began := time.Now()
		frozen := w.serve("KAPPACTL_FAULT=" + point + ":1:stop")
		frozen.awaitHeartbeat()
		result := make(chan outcome, 1)
		args := []string{"deploy", w.file("clicks.yaml", fmt.Sprintf(clicksJob, topic, -i)), "--promote", "auto", "--wait-agent", "3m"}
		if strings.HasPrefix(point, "live.") {
			args = []string{"status", "clicks"}
		}
		go func() { result <- w.run(args...) }()
		if strings.HasPrefix(point, "live.") {
			produceClicks(t, w.brokers, topic, total, 1000)
			total += 1000
		}
		kafkatest.Until(t, "the agent stands still at "+point, frozen.stopped)
		other := w.serve()
		if o := <-result; o.code != 0 {
			t.Fatalf("%v with an agent frozen at %s: exit %d\n%s%s", args, point, o.code, o.stdout, o.stderr)
		}
		kafkatest.Until(t, "the other agent has counted everything", func() bool { return w.count() == total })
		frozen.goOn()
		produceClicks(t, w.brokers, topic, total, 1000)
		total += 1000
		kafkatest.Until(t, "both have counted everything", func() bool { return w.count() == total })
		w.caughtUp("clicks")
		w.equalAfter(agentFrozen, at(point), "clicks")
		frozen.stop()
		other.stop()
		t.Logf("%s: %s", point, time.Since(began).Round(10*time.Millisecond))
	}
}
