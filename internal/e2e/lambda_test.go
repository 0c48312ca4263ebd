package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

// lambdaJob is the job clicks of mode lambda, over pages from a number on.
func (w *world) lambdaJob(name, topic string, from int) string {
	w.t.Helper()
	return w.file(name, "mode: lambda\n"+fmt.Sprintf(clicksJob, topic, from)+fmt.Sprintf("archive: {location: \"file://%s/archive\"}\n", w.dir))
}

// rotated begins a generation of the job's version, as a run does: what is committed from now on has its epoch.
func (w *world) rotated(number, generation int) {
	w.t.Helper()
	w.exec(fmt.Sprintf(`DO $$ BEGIN
		PERFORM FROM kappactl.version WHERE job = 'clicks' AND number = %[1]d FOR NO KEY UPDATE;
		PERFORM FROM kappactl.position WHERE job = 'clicks' AND number = %[1]d ORDER BY topic_id, partition FOR UPDATE;
		UPDATE kappactl.position SET epoch = %[2]d WHERE job = 'clicks' AND number = %[1]d;
	END $$`, number, generation))
}

// TestAJobMovesFromKappaToLambdaAndBack: the same file with another word in it is a candidate like any other: checked, compared,
// flipped, rolled back to and removed.
func TestAJobMovesFromKappaToLambdaAndBack(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Fake(t)
	w := newWorld(t, brokers)
	const all = 4000
	topic := clicksTopic(t, brokers, all)
	w.serve()
	w.ok("deploy", w.archivedJob(topic))
	produceClicks(t, brokers, topic, all, 100)
	if out := w.ok("plan", w.lambdaJob("lambda.yaml", topic, 0)); !strings.Contains(out, "a join to it by key aggregates all of it") {
		t.Errorf("the plan does not warn of joins:\n%s", out)
	}
	w.ok("deploy", w.lambdaJob("lambda.yaml", topic, 0))
	w.ok("diff", "clicks")
	w.ok("promote", "clicks", "v2")
	total := func(n int64) func() bool {
		return func() bool { return w.sum("SELECT sum(clicks)::bigint FROM clicks_hourly") == n }
	}
	produceClicks(t, brokers, topic, all+100, 50)
	w.until("all is served", total(all+150))
	w.rotated(2, 1)
	produceClicks(t, brokers, topic, all+150, 50)
	w.until("all is served", total(all+200))
	if w.sum("SELECT count(DISTINCT _epoch) FROM clicks__v2") != 2 || w.sum("SELECT count(*) FROM clicks__v2_g0") == 0 {
		t.Error("the layers of the version are not generation 0 and two epochs")
	}
	w.ok("verify", "clicks")
	w.ok("query", "clicks", "page=7")
	kafkatest.Produce(t, brokers, topic, 0, // a day ahead, and a year late: a cut is one of offsets
		fmt.Sprintf(`{"user":"u","page":7,"ts":%q,"ms":1}`, time.Now().Add(24*time.Hour).Format(time.RFC3339)),
		`{"user":"u","page":7,"ts":"2025-01-01T00:00:00Z","ms":1}`)
	w.rotated(2, 2)
	w.until("all is served", total(all+202))
	w.ok("verify", "clicks")
	w.ok("deploy", w.archivedJob(topic)) // v1 is warm still
	w.ok("promote", "clicks", "v1")
	produceClicks(t, brokers, topic, all+200, 100)
	w.until("all is served", total(all+302))
	w.until("the lambda version follows", func() bool {
		return w.sum("SELECT sum(next)::bigint FROM kappactl.position WHERE number = 2") == all+302
	})
	w.ok("rollback", "clicks", "v2")
	w.ok("verify", "clicks")
	w.ok("retire", "clicks", "v1", "--now", "--yes")
	w.ok("drop", "clicks", "--keep-view", "--yes")
	if !total(all + 302)() {
		t.Error("the view that is kept lost rows")
	}
	if left := w.sum(`SELECT count(*) FROM pg_class WHERE relname ~ '^clicks__v1'`); left != 0 {
		t.Errorf("%d relations of versions that were retired are left", left)
	}
}

// TestAChangedQueryIsInBothLayersOrInNone: layers are of one version, so readers see all of the results of one query.
func TestAChangedQueryIsInBothLayersOrInNone(t *testing.T) { // pitfall 14
	t.Parallel()
	brokers := kafkatest.Fake(t)
	w := newWorld(t, brokers)
	const all = 2000
	topic := clicksTopic(t, brokers, all)
	w.serve()
	w.ok("deploy", w.lambdaJob("all.yaml", topic, 0))
	produceClicks(t, brokers, topic, all, 200)
	w.until("both layers have rows", func() bool {
		return w.sum("SELECT sum(clicks)::bigint FROM clicks_hourly") == all+200 && w.sum("SELECT count(*) FROM clicks__v1") > 0
	})
	high := w.sum("SELECT sum(clicks)::bigint FROM clicks_hourly WHERE page >= 100")
	w.ok("deploy", w.lambdaJob("high.yaml", topic, 100))
	stop := w.keepReading(fmt.Sprintf(`SELECT count(*), CASE WHEN sum(clicks) IN (%d, %d) THEN 1 END FROM clicks_hourly`, all+200, high))
	w.ok("promote", "clicks", "v2")
	if got := w.sum("SELECT sum(clicks)::bigint FROM clicks_hourly"); got != high {
		t.Errorf("the view has %d clicks, want %d", got, high)
	}
	w.ok("verify", "clicks")
	if stop() == 0 {
		t.Error("nobody read")
	}
}
