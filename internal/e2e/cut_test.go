package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

// statement is one that a connection to PostgreSQL is cut at: the words that lead to it on its connection.
type statement struct {
	name  string
	words []string
}

// deeds are what is done at it. A statement lost on its way matters most where it is a COMMIT; everything at every statement takes
// long, and is left to make soak.
func (s statement) deeds(all bool) []deed {
	switch {
	case all || s.name == "live commit: COMMIT":
		return []deed{cutBefore, cutAfter, halfOpen}
	case s.words[len(s.words)-1] == "commit":
		return []deed{cutBefore, cutAfter}
	}
	return []deed{cutAfter}
}

// kind is the fault of the matrix that the deed is.
func (d deed) kind() string { return cutFromPG + " " + string(d) }

// cure says what becomes of a connection.
func (d deed) cure() string {
	switch d {
	case cutBefore:
		return "the transaction never was; it is tried again"
	case cutAfter:
		return "what the database holds decides: the rows are claimed again, which waits for the transaction and returns the true position"
	case halfOpen:
		return "the answer is waited for three leases (at most 30 s), then the connection is given up and the work is tried again"
	}
	return ""
}

const moveWords = "UPDATE kappactl.position AS p"

// liveStatements are those of a live commit and of a claim.
var liveStatements = []statement{
	{"any transaction: BEGIN", []string{"begin isolation level read committed"}},
	{"live commit: positions locked", []string{"ORDER BY topic_id, partition FOR UPDATE"}},
	{"live commit: positions moved", []string{moveWords}},
	{"live commit: rows merged", []string{moveWords, "ON CONFLICT"}},
	{"live commit: COMMIT", []string{moveWords, "commit"}},
	{"claim renewed", []string{"UPDATE kappactl.position SET lease"}},
}

// flipStatements are those of a barrier and a flip; replayStatements those of a replay, from the first claim to the table that is
// ready; askStatements those of a command that asks for something.
var (
	flipStatements = []statement{
		{"flip: barrier set", []string{"SET hold = tops.top"}},
		{"flip: readers' snapshots looked for", []string{"pg_stat_activity"}},
		{"flip: view switched", []string{"CREATE OR REPLACE VIEW"}},
		{"flip: COMMIT", []string{"CREATE OR REPLACE VIEW", "commit"}},
		{"flip: barrier released", []string{"SET hold = NULL"}},
	}
	replayStatements = []statement{
		{"replay: segment claimed", []string{"UPDATE kappactl.segment AS r SET claim"}},
		{"replay: rows copied", []string{"COPY "}},
		{"replay: segment marked done", []string{"SET state = 'done'"}},
		{"replay: COMMIT of a segment", []string{"SET state = 'done'", "commit"}},
		{"build: table filled", []string{"TRUNCATE TABLE"}},
		{"build: COMMIT of the filled table", []string{"TRUNCATE TABLE", "commit"}},
		{"build: index made", []string{"CREATE UNIQUE INDEX"}},
		{"build: COMMIT that makes it live", []string{"SET next = p.frozen_end", "commit"}},
	}
)

// TestCutWhileFollowing loses the connection to PostgreSQL at each statement of a live commit.
func TestCutWhileFollowing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kafkatest.Fake(t))
	topic := kafkatest.Name("clicks")
	kafkatest.Topic(t, w.brokers, topic, 4, nil)
	total := 4000
	produceClicks(t, w.brokers, topic, 0, total)
	p := startProxy(t, hostOf(t, w.dsn))
	w.serve("KAPPACTL_DSN=" + p.dsn(w.dsn)).awaitHeartbeat()
	w.ok("deploy", w.file("clicks.yaml", fmt.Sprintf(clicksJob, topic, 0)))
	for _, s := range liveStatements {
		for _, d := range s.deeds(soak) {
			began := time.Now()
			struck := p.arm(d, s.words...)
			produceClicks(t, w.brokers, topic, total, 1000)
			total += 1000
			awaitStruck(t, struck, d, s)
			kafkatest.Until(t, "everything is counted after "+s.name+", "+string(d), func() bool { return w.count() == total })
			w.caughtUp("clicks")
			w.equalAfter(d.kind(), s.name, "clicks")
			t.Logf("%s, %s: %s", s.name, d, time.Since(began).Round(10*time.Millisecond))
		}
	}
}

// TestCutWhileFlipping loses the connection at each statement of a promote, which goes to and fro between two versions.
func TestCutWhileFlipping(t *testing.T) {
	t.Parallel()
	w, _ := verified(t, kafkatest.Fake(t))
	p := startProxy(t, hostOf(t, w.dsn))
	w.serve("KAPPACTL_DSN=" + p.dsn(w.dsn)).awaitHeartbeat()
	stopReading := w.keepReading("SELECT count(*), sum(clicks)::bigint FROM clicks_hourly")
	to := 2
	for _, s := range flipStatements {
		for _, d := range s.deeds(soak) {
			began := time.Now()
			w.ok("wait", "clicks", fmt.Sprintf("v%d", to), "--for", "verified")
			struck := p.arm(d, s.words...)
			version := fmt.Sprintf("v%d", to)
			w.ok("promote", "clicks", version, "--timeout", "3m")
			awaitStruck(t, struck, d, s)
			if live := w.sum("SELECT live FROM kappactl.job"); live != int64(to) {
				t.Fatalf("v%d is live after a promote of %s with %s, %s", live, version, s.name, d)
			}
			w.caughtUp("clicks")
			w.equalAfter(d.kind(), s.name, "clicks")
			to = 3 - to
			t.Logf("%s, %s: %s", s.name, d, time.Since(began).Round(10*time.Millisecond))
		}
	}
	if polls := stopReading(); polls < 20 {
		t.Errorf("the reader saw only %d answers", polls)
	}
}

// TestCutWhileReplaying loses the connection at each statement of a replay, a version for each.
func TestCutWhileReplaying(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kafkatest.Fake(t))
	topic := kafkatest.Name("clicks")
	kafkatest.Topic(t, w.brokers, topic, 2, nil)
	for partition := range 2 {
		kafkatest.ProduceMany(t, w.brokers, 1000, func(i int) *kgo.Record { return click(topic, int32(partition), i) })
	}
	p := startProxy(t, hostOf(t, w.dsn))
	w.serve("KAPPACTL_DSN=" + p.dsn(w.dsn)).awaitHeartbeat()
	version := 0
	for _, s := range replayStatements {
		for _, d := range s.deeds(soak) {
			began := time.Now()
			version++
			struck := p.arm(d, s.words...)
			w.ok("deploy", w.file("clicks.yaml", fmt.Sprintf(clicksJob, topic, -version))) // every page passes each of them
			awaitStruck(t, struck, d, s)
			name := fmt.Sprintf("v%d", version)
			w.equalAfter(d.kind(), s.name, "clicks", name)
			if version > 1 {
				w.ok("abort", "clicks", name)
			}
			t.Logf("%s, %s: %s", s.name, d, time.Since(began).Round(10*time.Millisecond))
		}
	}
}

func awaitStruck(t *testing.T, struck <-chan struct{}, d deed, s statement) {
	t.Helper()
	select {
	case <-struck:
	case <-time.After(3 * time.Minute):
		t.Fatalf("it never came to this: %s, %s", s.name, d)
	}
}
