package speedlayer

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
)

// impostor is a cluster that may answer as one that does not know its topics, or that has another of the same name.
type impostor struct {
	*kfake.Cluster
	away    atomic.Bool
	id      [16]byte // of every topic meanwhile; none: it has no topic
	cluster string   // its own id meanwhile; empty: none is said
}

func newImpostor(t *testing.T) *impostor {
	t.Helper()
	i := &impostor{Cluster: kafkatest.FakeCluster(t, kfake.NumBrokers(1))}
	i.ControlKey(int16(kmsg.Metadata), i.metadata)
	i.ControlKey(int16(kmsg.Fetch), i.fetch)
	return i
}

func (i *impostor) metadata(req kmsg.Request) (kmsg.Response, error, bool) {
	i.KeepControl()
	m := req.(*kmsg.MetadataRequest)
	if !i.away.Load() || len(m.Topics) == 0 {
		return nil, nil, false
	}
	resp := m.ResponseKind().(*kmsg.MetadataResponse)
	b := kmsg.NewMetadataResponseBroker()
	b.Host = "127.0.0.1"
	_, _ = fmt.Sscanf(i.ListenAddrs()[0], "127.0.0.1:%d", &b.Port)
	resp.Brokers = append(resp.Brokers, b)
	if i.cluster != "" {
		resp.ClusterID = &i.cluster
	}
	for _, topic := range m.Topics {
		rt := kmsg.NewMetadataResponseTopic()
		rt.Topic, rt.TopicID = topic.Topic, i.id
		if rt.TopicID == [16]byte{} {
			rt.ErrorCode = kerr.UnknownTopicOrPartition.Code
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp, nil, true
}

func (i *impostor) fetch(req kmsg.Request) (kmsg.Response, error, bool) {
	i.KeepControl()
	if !i.away.Load() {
		return nil, nil, false
	}
	f := req.(*kmsg.FetchRequest)
	resp := f.ResponseKind().(*kmsg.FetchResponse)
	for _, topic := range f.Topics {
		rt := kmsg.NewFetchResponseTopic()
		rt.Topic, rt.TopicID = topic.Topic, topic.TopicID
		for _, p := range topic.Partitions {
			rp := kmsg.NewFetchResponseTopicPartition()
			rp.Partition, rp.ErrorCode = p.Partition, kerr.NotLeaderForPartition.Code
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp, nil, true
}

// TestAFaultThatSaysWhatTheBrokersSayEndsWithIt: a topic that brokers did not know for three seconds stopped live partitions until
// somebody changed the row.
func TestAFaultThatSaysWhatTheBrokersSayEndsWithIt(t *testing.T) {
	t.Parallel()
	for kind, id := range map[job.FaultKind][16]byte{job.FaultMissing: {}, job.FaultRecreated: {1}} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			c := newImpostor(t)
			c.id = id
			r := newRig(t, c.ListenAddrs(), 1, sums)
			r.startLive()
			stop := r.agent("a", nil)
			r.produce(0, 200, 40)
			r.caughtUp()
			c.away.Store(true)
			if got := r.fault(0); got.Kind != kind {
				t.Errorf("fault %+v, want %s", got, kind)
			}
			stop()
			r.agent("b", nil) // one that finds the fault in the row
			c.away.Store(false)
			r.produce(0, 300, 10)
			kafkatest.Until(t, "the fault has ended and all is read", func() bool {
				return r.next(0) == 50 && positions(t, r.pool, r.ref)[0].Fault.Kind == job.FaultNone
			})
			r.equal()
		})
	}
}

func TestAReplayGoesOnWhenItsTopicIsThereAgain(t *testing.T) {
	t.Parallel()
	c := newImpostor(t)
	r := newRig(t, c.ListenAddrs(), 1, sums)
	r.produce(0, 200, 40)
	r.startReplay(10)
	c.away.Store(true)
	r.agent("a", nil)
	kafkatest.Until(t, "a segment has failed", func() bool {
		return r.one(`SELECT count(*) FROM kappactl.segment WHERE state = 'failed' AND fault = 'missing'`) > 0
	})
	c.away.Store(false)
	kafkatest.Until(t, "all segments are done", func() bool {
		return r.one(`SELECT count(*) FROM kappactl.segment WHERE state <> 'done' OR fault <> ''`) == 0
	})
	r.build()
	r.caughtUp()
	r.equal()
}

// TestWhatAnotherClusterSaysOfATopicIsNotBelieved: a bootstrap name that leads to another cluster for a while killed every version.
func TestWhatAnotherClusterSaysOfATopicIsNotBelieved(t *testing.T) {
	t.Parallel()
	c := newImpostor(t)
	r := newRig(t, c.ListenAddrs(), 1, sums)
	exec(t, r.pool, `UPDATE kappactl.job SET cluster_id = 'ours'`, nil)
	c.cluster, c.id = "theirs", [16]byte{7}
	r.startLive()
	said := &heard{}
	r.log = testLog(said)
	r.produce(0, 200, 20)
	c.away.Store(true)
	r.agent("a", nil)
	kafkatest.Until(t, "it is said for longer than another id is waited for", func() bool {
		return said.line("belong to Kafka cluster theirs; the offsets are of cluster ours") != ""
	})
	began := time.Now()
	kafkatest.Until(t, "it lasts", func() bool { return time.Since(began) > 4*time.Second })
	if at := positions(t, r.pool, r.ref)[0]; at.Fault.Kind != job.FaultNone || at.Next != 0 {
		t.Errorf("next %d, fault %+v", at.Next, at.Fault)
	}
}

// TestARecordThatIsSkippedIsADeadLetter of its version, and what follows is read.
func TestARecordThatIsSkippedIsADeadLetter(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 1, failing, func(s *job.Spec) { s.Source.OnError = job.OnError{Fail: true} })
	r.startLive()
	r.agent("a", nil)
	kafkatest.Produce(t, r.brokers, r.topic, 0, `{"k":"x","v":1}`, `{"k":"x","v":777}`, `{"k":"x","v":3}`)
	got := r.fault(0)
	again := func() (places []string) {
		inTx(t, r.pool, func(tx *pg.Tx) (err error) {
			places, err = Store{}.Retry(t.Context(), tx, r.ref)
			return err
		})
		return places
	}
	if diff := cmp.Diff([]string{r.topic + "/0"}, again()); diff != "" {
		t.Error(diff)
	}
	got = r.fault(0) // tried again, it fails again
	accept := func(g job.Range) (took bool) {
		inTx(t, r.pool, func(tx *pg.Tx) (err error) {
			took, err = Store{}.AcceptGap(t.Context(), tx, r.ref, r.topic, 0, g, "ann")
			return err
		})
		return took
	}
	if accept(job.Range{From: 1, To: 3}) || accept(job.Range{From: 0, To: 2}) {
		t.Error("another range than that of the fault was skipped")
	}
	if !accept(job.Range{From: got.From, To: got.To}) {
		t.Fatalf("%+v was not skipped", got)
	}
	r.caughtUp()
	if diff := cmp.Diff([]string{"(1,skipped,-1)"}, lines(t, r.pool, `SELECT "offset", reason, size FROM kappactl.dead_letter`)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"(3,1)"}, lines(t, r.pool, `SELECT records, dead_letters FROM kappactl.position`)); diff != "" {
		t.Error(diff)
	}
}

// TestABatchThatIsTooLargeIsSkippedInAReplay with what lies around it replayed.
func TestABatchThatIsTooLargeIsSkippedInAReplay(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 1, sums)
	r.produce(0, 200, 30)
	r.startReplay(0)
	exec(t, r.pool, `UPDATE kappactl.segment SET state = 'failed', fault = 'too_large', fault_from = 10, fault_to = 12`, nil)
	inTx(t, r.pool, func(tx *pg.Tx) error {
		took, err := Store{}.AcceptGap(t.Context(), tx, r.ref, r.topic, 0, job.Range{From: 10, To: 12}, "ann")
		if !took {
			t.Error("it was not skipped")
		}
		return err
	})
	r.agent("a", nil)
	r.build()
	want := []string{"(0,10,10)", "(10,12,0)", "(12,30,18)"}
	if diff := cmp.Diff(want, lines(t, r.pool, `SELECT from_offset, to_offset, records FROM kappactl.segment ORDER BY 1`)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"(10,12)"}, lines(t, r.pool, `SELECT from_offset, to_offset FROM kappactl.accepted_gap`)); diff != "" {
		t.Error(diff)
	}
}
