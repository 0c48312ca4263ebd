package speedlayer

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
)

func TestTheBrakeSaysWhyAndHoldsUntilHalfOfItsLimit(t *testing.T) {
	for name, c := range map[string]struct {
		s      strain
		before string
		want   string
	}{
		"nothing":                {strain{commit: 499 * time.Millisecond, replicaSeconds: 9, replicaBytes: 255 << 20}, "", ""},
		"a slow commit":          {strain{commit: 600 * time.Millisecond}, "", "a commit takes 600ms (over 500ms)"},
		"a replica by its time":  {strain{replica: "east", replicaSeconds: 11}, "", "replica east is 11s behind (over 10s)"},
		"a replica by its bytes": {strain{replica: "east", replicaBytes: 300 << 20}, "", "replica east is 300 MiB behind (over 256)"},
		"not yet over":           {strain{commit: 300 * time.Millisecond}, "before", "a commit takes 300ms"},
		"over":                   {strain{commit: 249 * time.Millisecond}, "before", ""},
	} {
		if got := brake(c.s, c.before); (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// replay.max_rate is over all workers and agents. What is read above it in the first second is bounded by a second's worth.
func TestTheRateHoldsOverWorkersAndAgents(t *testing.T) {
	t.Parallel()
	const rate = 20_000
	r := newRig(t, kafkatest.Fake(t), 4, sums, func(s *job.Spec) { s.Replay.MaxRate = rate })
	for p := range int32(4) {
		r.produce(p, 0, 1600)
	}
	r.startReplay(50)
	began := time.Now()
	r.agent("a", nil)
	r.agent("b", nil)
	kafkatest.Until(t, "the replay ends", func() bool { return r.one(`SELECT count(*) FROM kappactl.segment WHERE state <> 'done'`) == 0 })
	took := time.Since(began).Seconds()
	total := float64(r.one(`SELECT sum(bytes) FROM kappactl.segment`))
	// Both may begin with a second of all of it, and go on with all of it until they next look who else reads.
	if most := 3*rate + 1.1*rate*took; total > most {
		t.Errorf("%.0f bytes in %.1fs, at %d a second at most %.0f", total, took, rate, most)
	}
	if total < 5*rate {
		t.Fatalf("%.0f bytes are too few to tell", total)
	}
}

// The rate is shared by those that read, not by those that live.
func TestAnIdleAgentTakesNoShareOfTheRate(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 1, sums)
	r.produce(0, 0, 100)
	r.startReplay(10)
	e := r.engine("a")
	v, err := e.load(t.Context(), r.ref)
	if err != nil {
		t.Fatal(err)
	}
	p := &pacer{run: &run{Engine: e, version: v, log: r.log}, target: target{ref: r.ref}}
	for owners, want := range map[string]int{"{}": 1, "{a}": 1, "{b}": 2, "{a,b,c}": 3} {
		exec(t, r.pool, `UPDATE kappactl.segment SET state = 'open', owner = NULL, lease = NULL`, nil)
		exec(t, r.pool, `UPDATE kappactl.segment SET state = 'claimed', owner = o.name, lease = clock_timestamp() + interval '1 minute'
			FROM unnest('`+owners+`'::text[]) WITH ORDINALITY AS o (name, n) WHERE from_offset = 10 * (o.n - 1)`, nil)
		if n, err := p.readers(t.Context()); err != nil || n != want {
			t.Errorf("read by %s: shared by %d, want %d (%v)", owners, n, want, err)
		}
	}
}

// While the database is strained a replay goes on, slowly, and says why.
func TestAReplayGoesEasyOnAStrainedDatabase(t *testing.T) {
	t.Parallel()
	r := newRig(t, kafkatest.Fake(t), 1, sums)
	r.produce(0, 0, 300)
	r.startReplay(5)
	strained := make(chan bool, 1)
	strained <- true
	stop := r.agent("a", func(e *Engine) {
		e.config.Workers = 1
		e.strained = func(s strain) strain {
			on := <-strained
			strained <- on
			if on {
				s.replica, s.replicaSeconds = "east", 42
			}
			return s
		}
	})
	kafkatest.Until(t, "the reason is noted", func() bool {
		got := lines(t, r.pool, `SELECT brake FROM kappactl.pace`)
		return len(got) == 1 && strings.Contains(got[0], "replica east is 42s behind")
	})
	<-strained
	strained <- false
	kafkatest.Until(t, "the replay ends", func() bool { return r.one(`SELECT count(*) FROM kappactl.segment WHERE state <> 'done'`) == 0 })
	stop()
	if left := r.one(`SELECT count(*) FROM kappactl.pace`); left != 0 {
		t.Errorf("%d rows of a replay that is not running", left)
	}
}

// A quota of the brokers slows the replay down; the row says by how much.
func TestAQuotaOfTheBrokersIsNoted(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Real(t)
	r := newRig(t, brokers, 1, sums)
	client := kafkatest.Name("replayer")
	kafkatest.ProduceMany(t, brokers, 20_000, func(i int) *kgo.Record {
		return &kgo.Record{Topic: r.topic, Value: fmt.Appendf(nil, `{"k":"key-%d-%0100d","v":%d}`, i%50, i, i%1000)}
	}, kgo.ProducerBatchCompression(kgo.NoCompression()))
	quota(t, brokers, client, 200_000)
	r.startReplay(0)
	r.agent("a", func(e *Engine) { e.Kafka.ClientID = client })
	kafkatest.Until(t, "the broker's throttling is noted", func() bool {
		return r.one(`SELECT count(*) FROM kappactl.pace WHERE broker_throttle > 0.05`) == 1
	})
}

// quota bounds what clients of this id may consume.
func quota(t *testing.T, brokers []string, client string, bytesPerSecond float64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	altered, err := kadm.NewClient(kafkatest.Client(t, brokers)).AlterClientQuotas(ctx, []kadm.AlterClientQuotaEntry{{
		Entity: kadm.ClientQuotaEntity{{Type: "client-id", Name: &client}},
		Ops:    []kadm.AlterClientQuotaOp{{Key: "consumer_byte_rate", Value: bytesPerSecond}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range altered {
		if a.Err != nil {
			t.Fatal(a.Err)
		}
	}
}
