package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/kappactl/kappactl/batchlayer"
	"github.com/kappactl/kappactl/internal/faultpoint"
	"github.com/kappactl/kappactl/internal/kafkatest"
)

// batchPoints are the steps of a batch run, and of the removal of the generation that it replaces.
var batchPoints = []string{
	batchlayer.FaultBatchRotated, batchlayer.FaultBatchBegun, faultpoint.SegmentStaged, faultpoint.SegmentAfterCommit, batchlayer.FaultBatchRead,
	batchlayer.FaultBatchFilled, batchlayer.FaultBatchIndexed, batchlayer.FaultBatchCompared, batchlayer.FaultBatchAttached,
	batchlayer.FaultBatchShowing, batchlayer.FaultBatchShown, batchlayer.FaultBatchRetired, batchlayer.FaultBatchDetached,
	batchlayer.FaultBatchDropped,
}

// TestAgentsKilledInBatchRunsLoseAndDoubleNothing kills the agent at every second step of a batch run while records arrive, lets
// another one finish it, and compares what readers see with a single pass over the log. make soak: at every step, 200 rounds.
func TestAgentsKilledInBatchRunsLoseAndDoubleNothing(t *testing.T) { // pitfall 4
	t.Parallel()
	rounds, step, records := len(batchPoints)/2, 2, 400
	if soak {
		rounds, step, records = 200, 1, 5_000
	}
	brokers := kafkatest.Fake(t)
	w, topic := newWorld(t, brokers), clicksTopic(t, brokers, records)
	job := w.file("lambda.yaml", fmt.Sprintf("mode: lambda\n"+clicksJob+"archive: {location: \"file://%s/archive\"}\nbatch: {keep_generations: 0}\n",
		topic, 0, w.dir))
	first := w.serve()
	w.ok("deploy", job)
	first.kill()
	for round := range rounds {
		point := batchPoints[round*step%len(batchPoints)]
		produceClicks(t, brokers, topic, (round+1)*records, records)
		doomed := w.serve("KAPPACTL_FAULT=" + point + ":1")
		result := make(chan outcome, 1)
		go func() { result <- w.run("batch", "run", "clicks", "--wait", "--wait-agent", "3m") }()
		select {
		case <-doomed.done:
		case <-time.After(3 * time.Minute):
			t.Fatalf("round %d: no agent was killed at %s", round, point)
		}
		survivor := w.serve()
		if o := <-result; o.code != 0 {
			t.Fatalf("round %d, killed at %s: exit %d\n%s%s", round, point, o.code, o.stdout, o.stderr)
		}
		w.caughtUp("clicks")
		w.equal("clicks")
		newest := w.sum(`SELECT max(generation) FROM kappactl.generation`)
		w.until("older generations are removed", func() bool {
			return w.sum(`SELECT count(*) FROM kappactl.generation WHERE dropped_at IS NULL`) == 1
		})
		if live := w.sum(`SELECT generation FROM clicks__v1_gen`); live != newest {
			t.Errorf("round %d, killed at %s: generation %d is shown, the newest is %d", round, point, live, newest)
		}
		left := fmt.Sprintf(`SELECT (SELECT count(*) FROM pg_class WHERE relname ~ '^clicks__v1_g[0-9]+(_staging)?$' AND relname <> 'clicks__v1_g%d')
			+ (SELECT count(*) FROM kappactl.batch_segment) + (SELECT count(*) FROM clicks__v1 WHERE _epoch < %[1]d)`, newest)
		if n := w.sum(left); n != 0 {
			t.Errorf("round %d, killed at %s: %d tables, segments or rows are left", round, point, n)
		}
		survivor.kill()
	}
}
