package kafka

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

// L01: the last offset is a transaction marker, which no reader is given.
func TestNextPassesTransactionMarkers(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		p := newTopic(t, brokers, 1, nil)[0]
		kafkatest.Committed(t, brokers, p.Topic, 0, `{"id":1}`)
		r := newReader(newFetcher(t, brokers, FetchConfig{}), Cursor{Partition: p})
		r.to(t, 2)
		if diff := cmp.Diff([]string{`{"id":1}`}, r.values[p]); diff != "" {
			t.Error(diff)
		}
	})
}

// R11: aborted records are not handed out.
func TestAbortedRecordsAreLeftOut(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		p := newTopic(t, brokers, 1, nil)[0]
		kafkatest.Aborted(t, brokers, p.Topic, 0, "no", "no")
		kafkatest.Committed(t, brokers, p.Topic, 0, "yes")
		kafkatest.Aborted(t, brokers, p.Topic, 0, "no")
		kafkatest.AwaitStable(t, brokers, p.Topic, 0, 7)
		r := newReader(newFetcher(t, brokers, FetchConfig{}), Cursor{Partition: p})
		r.to(t, 7)
		if diff := cmp.Diff([]string{"yes"}, r.values[p]); diff != "" {
			t.Error(diff)
		}
	})
}

// L03: an open transaction holds back what follows it, and nothing is lost when it ends.
func TestOpenTransactionHoldsReadersBack(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		p := newTopic(t, brokers, 1, nil)[0]
		kafkatest.Committed(t, brokers, p.Topic, 0, "first")
		kafkatest.AwaitStable(t, brokers, p.Topic, 0, 2)
		open := kafkatest.Begin(t, brokers)
		open.Produce(t, &kgo.Record{Topic: p.Topic, Value: []byte("open")})
		kafkatest.Produce(t, brokers, p.Topic, 0, "plain")
		r := newReader(newFetcher(t, brokers, FetchConfig{}), Cursor{Partition: p})
		r.to(t, 2)
		r.step(t)
		r.step(t)
		if l := r.last[p]; l.Next != 2 || l.LastStable != 2 || l.End != 4 {
			t.Errorf("behind an open transaction: %+v", l)
		}
		open.End(t, kgo.TryAbort)
		r.to(t, 5)
		if diff := cmp.Diff([]string{"first", "plain"}, r.values[p]); diff != "" {
			t.Error(diff)
		}
	})
}

// R11 at length: interleaved transactions of several producers, a third of them aborted, read one batch a fetch and in one go.
func TestInterleavedTransactionsShowOnlyWhatWasCommitted(t *testing.T) {
	t.Parallel()
	kafkatest.Each(t, func(t *testing.T, brokers []string) {
		p := newTopic(t, brokers, 1, nil)[0]
		rng := rand.New(rand.NewPCG(1, 2))
		producers := []*kafkatest.Transaction{kafkatest.Begin(t, brokers), kafkatest.Begin(t, brokers), kafkatest.Begin(t, brokers)}
		open := make([][]string, len(producers))
		var want []string
		for i := range 120 {
			n := rng.IntN(len(producers))
			v := fmt.Sprint(i, strings.Repeat("x", 200))
			producers[n].Produce(t, &kgo.Record{Topic: p.Topic, Value: []byte(v)})
			open[n] = append(open[n], v)
			if rng.IntN(3) > 0 {
				continue
			}
			commit := kgo.TransactionEndTry(rng.IntN(10) >= 3)
			producers[n].End(t, commit)
			if commit {
				want = append(want, open[n]...)
			}
			open[n] = nil
		}
		for _, x := range producers {
			x.End(t, kgo.TryAbort)
		}
		kafkatest.Produce(t, brokers, p.Topic, 0, "last")
		want = append(want, "last")
		end, _ := kafkatest.Ends(t, brokers, p.Topic, 0)
		kafkatest.AwaitStable(t, brokers, p.Topic, 0, end)
		for limit, unpacked := range map[int32]int{1: 0, 300: 0, 1 << 20: 0, 1<<20 + 1: 1, 1<<20 + 2: 500} {
			r := newReader(newFetcher(t, brokers, FetchConfig{MaxPartitionBytes: limit, MaxUnpacked: unpacked}), Cursor{Partition: p})
			r.to(t, end)
			less := cmpopts.SortSlices(func(a, b string) bool { return a < b })
			if diff := cmp.Diff(want, r.values[p], less); diff != "" {
				t.Errorf("%d bytes a fetch: %s", limit, diff)
			}
		}
	})
}
