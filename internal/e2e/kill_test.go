package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

const clicksJob = `job: clicks
source:
  topics: [%s]
  format: json
  columns: {user: text, page: integer, ts: timestamptz, ms: bigint}
query: |
  SELECT page, date_trunc('hour', ts) AS hour, count(*) AS clicks, sum(ms) AS total_ms, avg(ms) AS avg_ms, max(ms) AS longest
  FROM source
  WHERE page >= %d
  GROUP BY page, hour
serve:
  view: public.clicks_hourly
checks:
  - {name: not_empty, sql: "SELECT count(*) > 0 FROM candidate"}
ready: {max_lag_time: 5s, stable_for: 0s}
live: {every: 20ms}
`

// produceClicks appends n click records over four partitions; the same from gives the same records.
func produceClicks(t *testing.T, brokers []string, topic string, from, n int) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(from), 7))
	kafkatest.ProduceMany(t, brokers, n, func(i int) *kgo.Record {
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(r.IntN(72*3600)) * time.Second)
		return &kgo.Record{Topic: topic, Partition: int32((from + i) % 4), Value: fmt.Appendf(nil,
			`{"user":"u%d","page":%d,"ts":%q,"ms":%d}`, r.IntN(500), r.IntN(200), at.Format(time.RFC3339), r.IntN(5000))}
	}, kgo.RecordPartitioner(kgo.ManualPartitioner()))
}

// clicksTopic is a topic of four partitions with the first n click records.
func clicksTopic(t *testing.T, brokers []string, n int) string {
	t.Helper()
	topic := kafkatest.Name("clicks")
	kafkatest.Topic(t, brokers, topic, 4, nil)
	produceClicks(t, brokers, topic, 0, n)
	return topic
}

// replayPoints and livePoints are the steps at which the agent is killed (internal/faultpoint).
var (
	replayPoints = []string{
		"segment.claimed", "segment.reading", "segment.copying", "segment.staged", "segment.before_commit", "segment.after_commit",
		"deploy.created", "deploy.frozen", "deploy.filled", "deploy.indexed", "deploy.sealed", "deploy.verified",
	}
	livePoints = []string{
		"live.claimed", "live.fetched", "live.begin", "live.positions", "live.upserted", "live.before_commit", "live.after_commit",
	}
)

// TestKilledAgentLosesAndDoublesNothing kills the agent at every step of a segment and of the commit, in rounds of 5,000
// records (make soak: 20,000), and compares the table with a single pass over the log after each round.
func TestKilledAgentLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	perTopic, records := 6, 5_000 // each round is compared from the log's beginning
	if soak {
		perTopic, records = 100, 20_000
	}
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		t.Parallel()
		var w *world
		var topic string
		killed := map[string]int{}
		steps := killSteps(strings.HasSuffix(t.Name(), "/kafka"))
		for round, point := range steps {
			if round%perTopic == 0 {
				w, topic = newWorld(t, brokers), clicksTopic(t, brokers, 0)
			}
			produceClicks(t, brokers, topic, round*records, records)
			if strings.HasPrefix(point, "live.") {
				killed[point] += w.killedInLive(point)
			} else {
				killed[point] += w.killedInReplay(fmt.Sprintf(clicksJob, topic, round), point)
			}
			if t.Failed() {
				t.Fatalf("round %d failed", round)
			}
		}
		for point, n := range killed {
			if n == 0 {
				t.Errorf("no agent was killed at %s: the round showed nothing", point)
			}
		}
		t.Logf("killed at: %v", killed)
	})
}

// killSteps are the steps of the rounds: replays and live commits in turn, until each step has had one. make soak has 250 rounds. Where
// an agent dies, a real broker sees a connection that ends, whatever the step: it has a few of each kind.
func killSteps(real bool) (steps []string) {
	rounds := len(replayPoints)
	switch {
	case soak:
		rounds = 125
	case real:
		rounds = 3
	}
	for i := range rounds {
		steps = append(steps, replayPoints[i%len(replayPoints)])
		if i < len(livePoints) || soak {
			steps = append(steps, livePoints[i%len(livePoints)])
		}
	}
	return steps
}

// killedInReplay stages a new version under an agent that dies at the point, lets another agent finish and compares.
func (w *world) killedInReplay(text, point string) (killed int) {
	w.t.Helper()
	job := w.file("clicks.yaml", text)
	doomed := w.serve("KAPPACTL_FAULT=" + point + ":1")
	// The deploy command outlives the agent; it ends when the second one has finished its work.
	result := make(chan outcome, 1)
	go func() { result <- w.run("deploy", job, "--wait-agent", "3m") }()
	select {
	case <-doomed.done:
		killed = 1
	case o := <-result:
		result <- o // the point was not reached often enough: the version is complete, the next agent only follows
		doomed.kill()
	case <-time.After(3 * time.Minute):
		w.t.Fatalf("neither was the agent killed at %s nor the deploy done", point)
	}
	survivor := w.serve()
	if o := <-result; o.code != 0 {
		w.t.Fatalf("deploy after a kill at %s: exit %d\n%s%s", point, o.code, o.stdout, o.stderr)
	}
	var status struct {
		Versions []struct{ Version, Phase string }
	}
	w.into(&status, "status", "clicks")
	newest := status.Versions[len(status.Versions)-1]
	for _, v := range status.Versions {
		if len(v.Version) > len(newest.Version) || len(v.Version) == len(newest.Version) && v.Version > newest.Version {
			newest = v
		}
	}
	if newest.Phase != "live" {
		w.ok("promote", "clicks", newest.Version)
	}
	w.equal("clicks")
	if killed > 0 {
		row(w.t, agentKilled, at(point)).shown()
	}
	for _, v := range status.Versions { // old versions would only make the next rounds slower
		if v.Version != newest.Version && v.Phase != "retired" {
			w.ok("retire", "clicks", v.Version, "--now", "--yes")
		}
	}
	survivor.stop()
	return killed
}

// killedInLive lets an agent die at the point while it follows the topic, lets another one catch up and compares.
func (w *world) killedInLive(point string) (killed int) {
	w.t.Helper()
	doomed := w.serve("KAPPACTL_FAULT=" + point + ":1")
	select {
	case <-doomed.done:
		killed = 1
	case <-time.After(3 * time.Minute):
		w.t.Errorf("the agent was not killed at %s\n%s", point, tail(doomed.log.String(), 20))
		doomed.kill()
	}
	survivor := w.serve()
	w.caughtUp("clicks")
	w.equal("clicks")
	if killed > 0 {
		row(w.t, agentKilled, at(point)).shown()
	}
	survivor.stop()
	return killed
}

// caughtUp waits until the version that status is about has read everything: until a sample taken after this call finds every partition
// read to its end. A verdict alone may be a second old, and of an agent that has gone. A process for every look would take most of the
// machine, so status is asked once the database has such a sample. A candidate that another flip overtook has caught up, too: status
// --exit-code ends with 6 for it.
func (w *world) caughtUp(job string) {
	w.t.Helper()
	const now = `SELECT clock_timestamp()`
	const ready = `SELECT v.verdict = 'ready' AND coalesce((SELECT bool_and(o.sampled_at > $2 AND o.position >= o.last_stable)
			FROM kappactl.observation o WHERE o.job = v.job AND o.number = v.number), false)
		FROM kappactl.version v WHERE v.job = $1 AND v.phase NOT IN ('standby', 'retiring', 'retired', 'aborted', 'failed')
		ORDER BY v.phase = 'live', v.number DESC LIMIT 1`
	var began time.Time
	kafkatest.Until(w.t, job+" has caught up", func() bool {
		if began.IsZero() {
			if w.pool.QueryRow(w.t.Context(), now).Scan(&began) != nil { // the server may be starting
				return false
			}
		}
		var is bool
		if err := w.pool.QueryRow(w.t.Context(), ready, job, began).Scan(&is); err != nil || !is {
			return false
		}
		code := w.run("status", job, "--exit-code").code
		return code == 0 || code == 6
	})
}

// TestPausedAgentIsFenced stops an agent in mid commit, lets another take its leases and lets the first go on.
func TestPausedAgentIsFenced(t *testing.T) {
	t.Parallel()
	embedded(t, func(t *testing.T, brokers []string) {
		t.Parallel()
		w := newWorld(t, brokers)
		topic := clicksTopic(t, brokers, 20_000)
		first := w.serve()
		w.ok("deploy", w.file("clicks.yaml", fmt.Sprintf(clicksJob, topic, 0)))
		first.stop()

		paused := w.serve("KAPPACTL_FAULT=live.fetched:1:stop")
		produceClicks(t, brokers, topic, 20_000, 20_000)
		kafkatest.Until(t, "the first agent is stopped", func() bool { return paused.stopped() })
		second := w.serve()
		w.caughtUp("clicks")
		if err := paused.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		produceClicks(t, brokers, topic, 40_000, 20_000)
		w.caughtUp("clicks")
		w.equalAfter(agentFrozen, "records are read, nothing is written", "clicks")
		second.stop()
		w.caughtUp("clicks")
		w.equal("clicks")
	})
}

// TestTwoAgentsShareTheWork runs two agents at once through a replay and live records.
func TestTwoAgentsShareTheWork(t *testing.T) {
	t.Parallel()
	embedded(t, func(t *testing.T, brokers []string) {
		t.Parallel()
		w := newWorld(t, brokers)
		topic := clicksTopic(t, brokers, 40_000)
		one := w.serve()
		w.serve()
		w.ok("deploy", w.file("clicks.yaml", fmt.Sprintf(clicksJob, topic, 0)))
		produceClicks(t, brokers, topic, 40_000, 20_000)
		w.caughtUp("clicks")
		w.equal("clicks")
		owners := func() (n int) {
			if err := w.pool.QueryRow(t.Context(), `SELECT count(DISTINCT owner) FROM kappactl.position WHERE job = 'clicks'`).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		kafkatest.Until(t, "both agents own partitions", func() bool { return owners() == 2 })
		produceClicks(t, brokers, topic, 60_000, 20_000)
		one.stop()
		w.caughtUp("clicks")
		w.equal("clicks")
	})
}

// stopped says whether the process stands still after SIGSTOP.
func (a *agent) stopped() bool {
	stat, err := readStat(a.cmd.Process.Pid)
	return err == nil && strings.HasPrefix(stat, "T")
}
