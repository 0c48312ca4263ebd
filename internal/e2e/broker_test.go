package e2e_test

import (
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

// behindProxy starts an embedded broker that says it is where the proxy is, so that nobody gets past it.
func behindProxy(t *testing.T) (*kfake.Cluster, []string, *proxy) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := startProxy(t, l.Addr().String())
	c := kafkatest.FakeCluster(t, kfake.ListenFn(func(string, string) (net.Listener, error) {
		return shownAt{l, p.listen.Addr()}, nil
	}))
	return c, []string{p.addr()}, p
}

// shownAt is a listener that calls itself by another address.
type shownAt struct {
	net.Listener
	addr net.Addr
}

// Addr is the other address.
func (s shownAt) Addr() net.Addr { return s.addr }

// frozenIn starts an agent that freezes at a point, deploys, and returns when it stands there.
func (w *world) frozenIn(point, text string, vars ...string) (*agent, <-chan outcome) {
	w.t.Helper()
	a := w.serve(append(vars, "KAPPACTL_FAULT="+point+":1:stop")...)
	job := w.file("frozen.yaml", text)
	result := make(chan outcome, 1)
	go func() { result <- w.run("deploy", job, "--wait-agent", "3m") }()
	kafkatest.Until(w.t, "the agent stands still at "+point, a.stopped)
	return a, result
}

func (a *agent) goOn() {
	a.w.t.Helper()
	if err := a.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		a.w.t.Fatal(err)
	}
}

// saysOfJob waits until the status of the job has these words.
func (w *world) saysOfJob(words string) {
	w.t.Helper()
	w.until("status says "+words, func() bool {
		return strings.Contains(w.ok("status", "clicks", "-o", "json"), words)
	})
}

// TestBrokersThatGoSilent: connections to the brokers stay open and nothing passes, while a version replays and while it
// follows; then they are lost again and again; then every answer is late.
func TestBrokersThatGoSilent(t *testing.T) {
	t.Parallel()
	_, brokers, p := behindProxy(t)
	w := newWorld(t, brokers)
	topic := clicksTopic(t, brokers, 8000)

	a, result := w.frozenIn("segment.reading", fmt.Sprintf(clicksJob, topic, 0))
	p.silent(true)
	a.goOn()
	w.saysOfJob("the brokers did not answer")
	p.silent(false)
	if o := <-result; o.code != 0 {
		t.Fatalf("deploy over silent brokers: exit %d\n%s%s", o.code, o.stdout, o.stderr)
	}
	w.equalAfter(brokerSilent, "in mid replay", "clicks")

	p.silent(true)
	w.saysOfJob("the brokers did not answer")
	toldOf(t, w.run("status", "clicks", "--exit-code"), brokerSilent, "while following, asked whether it is ready")
	p.silent(false)
	produceClicks(t, brokers, topic, 8000, 2000)
	kafkatest.Until(t, "everything is counted", func() bool { return w.count() == 10_000 })
	w.equalAfter(brokerSilent, "while following", "clicks")

	for i := range 5 {
		produceClicks(t, brokers, topic, 10_000+i*1000, 1000)
		p.cut()
	}
	kafkatest.Until(t, "everything is counted", func() bool { return w.count() == 15_000 })
	w.equalAfter(brokerCut, "five times while records arrive", "clicks")

	p.slow(100 * time.Millisecond)
	w.ok("deploy", w.file("slow.yaml", fmt.Sprintf(clicksJob, topic, 1)), "--promote", "auto")
	w.equalAfter(brokerSlow, "a version replays and is promoted", "clicks")
	if n := strings.Count(a.log.String(), "level=WARN"); n > 40 {
		t.Errorf("%d warnings in the agent's log", n)
	}
}

// TestAPartitionWithoutALeader: one partition of four has no leader when the log's end is asked for.
func TestAPartitionWithoutALeader(t *testing.T) { // L08
	t.Parallel()
	c := kafkatest.FakeCluster(t)
	w := newWorld(t, c.ListenAddrs())
	topic := clicksTopic(t, w.brokers, 8000)
	w.serve()
	w.ok("deploy", w.file("v1.yaml", fmt.Sprintf(clicksJob, topic, 0)))
	w.ok("deploy", w.file("v2.yaml", fmt.Sprintf(clicksJob, topic, 1)))
	var gone atomic.Bool
	gone.Store(true)
	c.ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if !gone.Load() {
			return nil, nil, false
		}
		return withoutLeader(req.(*kmsg.ListOffsetsRequest), 2000), nil, true
	})
	w.saysOfJob("LEADER_NOT_AVAILABLE")
	var status struct {
		Versions []struct {
			Version    string
			LagRecords *int64 `json:"lag_records"`
			Partitions []struct {
				Partition  int32
				LagRecords *int64 `json:"lag_records"`
			}
		}
	}
	w.into(&status, "status", "clicks", "v1")
	for _, v := range status.Versions {
		if v.LagRecords != nil {
			t.Errorf("the lag of %s is %d although one partition is unknown", v.Version, *v.LagRecords)
		}
		for _, p := range v.Partitions {
			if (p.LagRecords == nil) != (p.Partition == 1) {
				t.Errorf("%s: partition %d has lag %v", v.Version, p.Partition, p.LagRecords)
			}
		}
	}
	w.until("the candidate is not ready", func() bool { return w.run("status", "clicks", "v2", "--exit-code").code == 3 })
	toldOf(t, w.run("status", "clicks", "v2", "--exit-code"), noLeader, "a candidate is asked whether it is ready")
	if soak { // it tries for a minute
		toldOf(t, w.run("promote", "clicks", "v2"), noLeader, "a candidate is promoted")
	}
	gone.Store(false)
	w.ok("wait", "clicks", "v2", "--for", "verified", "--timeout", "3m")
	w.until("the candidate is known to be ready again", func() bool {
		return w.run("status", "clicks", "v2", "--exit-code").code == 0
	})
	w.ok("promote", "clicks", "v2")
	w.equalAfter(noLeader, "it has one again", "clicks")
}

// withoutLeader answers for a topic whose partitions all end at end, but for partition 1.
func withoutLeader(req *kmsg.ListOffsetsRequest, end int64) *kmsg.ListOffsetsResponse {
	resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
	for _, t := range req.Topics {
		rt := kmsg.NewListOffsetsResponseTopic()
		rt.Topic = t.Topic
		for _, p := range t.Partitions {
			rp := kmsg.NewListOffsetsResponseTopicPartition()
			rp.Partition, rp.Offset, rp.Timestamp = p.Partition, end, -1
			if p.Timestamp == -2 {
				rp.Offset = 0
			}
			if p.Partition == 1 {
				rp.ErrorCode, rp.Offset = kerr.LeaderNotAvailable.Code, -1
			}
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

// TestAnOpenTransactionHoldsACandidateBack: plain records pile up behind a transaction that stays open.
func TestAnOpenTransactionHoldsACandidateBack(t *testing.T) { // L03
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		t.Parallel()
		w, topic := oneCommitted(t, brokers)
		txn := kafkatest.Begin(t, brokers)
		txn.Produce(t, click(topic, 0, 2))
		kafkatest.ProduceMany(t, brokers, 100, func(i int) *kgo.Record { return click(topic, 0, i) })
		w.serve()
		text := strings.Replace(fmt.Sprintf(clicksJob, topic, 0), "max_lag_time: 5s", "max_lag_time: 1s", 1)
		w.ok("deploy", w.file("clicks.yaml", text), "--detach")
		w.saysOfJob("101 records held back by an open transaction")
		var waited outcome
		for _, limit := range []string{"6s", "1m", "3m"} { // a loaded machine may need longer for the first look
			if waited = w.run("deploy", w.file("clicks.yaml", text), "--timeout", limit); strings.Contains(waited.stderr, "held back") {
				break
			}
		}
		toldOf(t, waited, transacted, "one stays open, records pile up behind it")
		txn.End(t, kgo.TryAbort)
		w.ok("wait", "clicks", "v1", "--for", "live", "--timeout", "3m")
		if n := w.count(); n != 101 {
			t.Errorf("%d clicks, want 101: one committed, one aborted, 100 plain", n)
		}
		w.equalAfter(transacted, "the open one is aborted", "clicks")
	})
}

// TestATopicMadeAgain deletes a topic and makes it again under its name, with the agent running and stopped.
func TestATopicMadeAgain(t *testing.T) { // R03
	t.Parallel()
	for _, running := range []bool{true, false} {
		when := "the agent runs"
		if !running {
			when = "the agent is stopped meanwhile"
		}
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			kafkatest.Each(t, func(t *testing.T, brokers []string) {
				t.Parallel()
				w := newWorld(t, brokers)
				topic := kafkatest.Name("clicks")
				kafkatest.Topic(t, brokers, topic, 1, nil)
				kafkatest.ProduceMany(t, brokers, 40, func(i int) *kgo.Record { return click(topic, 0, i) })
				a := w.serve()
				w.ok("deploy", w.file("clicks.yaml", fmt.Sprintf(clicksJob, topic, 0)))
				if !running {
					a.stop()
				}
				kafkatest.DeleteTopic(t, brokers, topic)
				if running {
					w.saysOfJob("missing")
				}
				kafkatest.CreateTopic(t, brokers, topic, 1, nil)
				kafkatest.ProduceMany(t, brokers, 100, func(i int) *kgo.Record { return click(topic, 0, i) })
				if !running {
					a = w.serve()
				}
				w.saysOfJob("recreated")
				w.until("its exit code is that of a gap", func() bool { return w.run("status", "clicks", "--exit-code").code == 7 })
				toldOf(t, w.run("status", "clicks", "v1", "--exit-code"), topicAgain, when)
				if n := w.count(); n != 40 {
					t.Errorf("%d clicks, want the 40 of the topic that was: nothing of another topic belongs to the version", n)
				}
				if n := strings.Count(a.log.String(), "\n"); n > 60 {
					t.Errorf("%d lines in the agent's log:\n%s", n, tail(a.log.String(), 60))
				}
			})
		})
	}
}
