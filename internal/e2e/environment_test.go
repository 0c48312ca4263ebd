package e2e_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/faultpoint"
	"github.com/kappactl/kappactl/internal/kafkatest"
)

// TestTheClockOfAnAgentSteps sets the clock of an agent an hour forwards and back while it follows and while it replays, and lets
// another take over from it.
func TestTheClockOfAnAgentSteps(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kafkatest.Fake(t))
	topic := kafkatest.Name("clicks")
	kafkatest.Topic(t, w.brokers, topic, 4, nil)
	total := 2000
	produceClicks(t, w.brokers, topic, 0, total)
	file := filepath.Join(w.dir, "clock")
	step := func(by string) {
		if err := os.WriteFile(file, []byte(by), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := w.serve(faultpoint.Clock + "=" + file)
	w.ok("deploy", w.file("v1.yaml", fmt.Sprintf(clicksJob, topic, 0)), "--wait-agent", "3m")
	follow := func(by, when string) {
		step(by)
		produceClicks(t, w.brokers, topic, total, 1000)
		total += 1000
		kafkatest.Until(t, "everything is counted", func() bool { return w.count() == total })
		w.caughtUp("clicks")
		w.equalAfter(clockStepped, when, "clicks")
	}
	follow("1h", "forwards an hour while following")
	follow("-1h", "backwards an hour while following")

	a.stop()
	a, result := w.frozenIn("segment.reading", fmt.Sprintf(clicksJob, topic, -1), faultpoint.Clock+"="+file)
	step("1h")
	a.goOn()
	if o := <-result; o.code != 0 {
		t.Fatalf("deploy over a step of the clock: exit %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	w.ok("promote", "clicks", "v2")
	w.equalAfter(clockStepped, "forwards in mid replay; then a promote", "clicks")

	w.serve()
	a.kill()
	follow("0s", "its agent dies, another one has the right time")

	asked := *w
	asked.vars = []string{faultpoint.Clock + "=" + file}
	step("-1h")
	w.until("a command with a wrong clock finds it ready", func() bool { return asked.run("status", "clicks", "--exit-code").code == 0 })
	row(t, clockStepped, "of the machine where a command runs").shown()
}

// TestPostgreSQLThatTakesNoWrites makes the database read-only, as a failover does, and writable again for new sessions only: old
// ones still lead to the server that was the primary.
func TestPostgreSQLThatTakesNoWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kafkatest.Fake(t))
	topic := clicksTopic(t, w.brokers, 2000)
	w.serve()
	w.ok("deploy", w.file("v1.yaml", fmt.Sprintf(clicksJob, topic, 0)))

	// An agent that cannot write its heartbeats counts as gone after a second: another one does not.
	w.exec(`INSERT INTO kappactl.agent (id, host, pid, release, capacity, dialects, heartbeat_at)
		SELECT 'another', host, 0, release, capacity, dialects, heartbeat_at + interval '1 hour' FROM kappactl.agent`)
	database := "ALTER DATABASE " + strings.TrimPrefix(filepath.Base(strings.Split(w.dsn, "?")[0]), "/")
	w.exec(database + " SET default_transaction_read_only = on")
	w.exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'kappactl agent'")
	produceClicks(t, w.brokers, topic, 2000, 1000)
	toldOf(t, w.run("deploy", w.file("v2.yaml", fmt.Sprintf(clicksJob, topic, 1)), "--wait-agent", "0s"), readOnly, "something is asked for")
	kafkatest.Until(t, "all of the agent's sessions are read-only", func() bool {
		return w.sum(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'kappactl agent'`) > 0
	})
	w.exec("SET default_transaction_read_only = off; " + database + " RESET default_transaction_read_only; DELETE FROM kappactl.agent WHERE id = 'another'")
	kafkatest.Until(t, "everything is counted", func() bool { return w.count() == 3000 })
	w.caughtUp("clicks")
	w.equalAfter(readOnly, "it takes writes again, on new connections only", "clicks")
}

// TestAnAgentCutOffIsReplaced: an agent's connections to PostgreSQL stay open and nothing passes; another takes over, and the
// first finds that nothing is its own any more.
func TestAnAgentCutOffIsReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t, kafkatest.Fake(t))
	topic := clicksTopic(t, w.brokers, 2000)
	p := startProxy(t, hostOf(t, w.dsn))
	w.serve("KAPPACTL_DSN=" + p.dsn(w.dsn)).awaitHeartbeat()
	w.ok("deploy", w.file("v1.yaml", fmt.Sprintf(clicksJob, topic, 0)))
	p.silent(true)
	other := w.serve()
	produceClicks(t, w.brokers, topic, 2000, 1000)
	kafkatest.Until(t, "the other agent counts everything", func() bool { return w.count() == 3000 })
	p.silent(false)
	produceClicks(t, w.brokers, topic, 3000, 1000)
	kafkatest.Until(t, "both count everything", func() bool { return w.count() == 4000 })
	w.equalAfter(cutFromPG+" altogether", "another agent takes over, then the first is back", "clicks")
	other.stop()
	produceClicks(t, w.brokers, topic, 4000, 1000)
	kafkatest.Until(t, "the first counts everything", func() bool { return w.count() == 5000 })
	w.caughtUp("clicks")
	w.equalAfter(cutFromPG+" altogether", "the first is alone again", "clicks")
}

// TestRetentionOvertakesASlowReplay: what is not read yet is deleted by the broker's own retention.
func TestRetentionOvertakesASlowReplay(t *testing.T) { // R01
	t.Parallel()
	brokers := kafkatest.Real(t)
	w := newWorld(t, brokers)
	topic := kafkatest.Name("clicks")
	kafkatest.Topic(t, brokers, topic, 1, nil)
	kafkatest.ProduceMany(t, brokers, 20_000, func(i int) *kgo.Record { // 4 MB: several fetches
		return &kgo.Record{Topic: topic, Value: fmt.Appendf(nil, `{"url":"/%d","ms":%d,"more":"%0200d"}`, i%7, i, i)}
	}, kgo.ProducerBatchCompression(kgo.NoCompression()))
	text := fmt.Sprintf(lookedAtJob, topic, "") + "replay: {max_rate: 200kB/s}\n"
	w.serve()
	w.ok("deploy", w.file("slow.yaml", text), "--detach")
	kafkatest.Until(t, "the replay has begun", func() bool {
		return w.sum("SELECT count(*) FROM kappactl.segment WHERE state = 'claimed'") > 0
	})
	soon := "1"
	rs, err := kadm.NewClient(kafkatest.Client(t, brokers)).AlterTopicConfigs(t.Context(),
		[]kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &soon}}, topic)
	if err != nil || rs[0].Err != nil {
		t.Fatal(err, rs)
	}
	toldOf(t, w.run("wait", "clicks", "v1", "--for", "verified", "--timeout", "3m"), recordsGone, "retention overtakes a slow replay")
}

// TestServersThatAcceptAndNeverAnswer: nothing hangs on a port that is open and silent.
func TestServersThatAcceptAndNeverAnswer(t *testing.T) { // C07
	t.Parallel()
	w := newWorld(t, kafkatest.Fake(t))
	topic := kafkatest.Name("clicks")
	kafkatest.Topic(t, w.brokers, topic, 4, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // connections wait in its queue
	w.serve()
	job := w.file("v1.yaml", fmt.Sprintf(clicksJob, topic, 0))
	toldOf(t, w.run("deploy", job, "--brokers", l.Addr().String()), unusable, "the brokers' port is open and silent")
	silent := *w
	silent.vars = []string{"KAPPACTL_DSN=postgres://kappa@" + l.Addr().String() + "/x?sslmode=disable"}
	toldOf(t, silent.run("status"), unusable, "PostgreSQL's port is open and silent")
	toldOf(t, silent.run("serve"), unusable, "an agent starts and PostgreSQL's port is open and silent")
}
