package speedlayer

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
)

// TestABarrierOverManyPartitionsThatCatchUpIsReached: what lies behind the barrier in some partitions must not fill the memory that the
// others need to get to it.
func TestABarrierOverManyPartitionsThatCatchUpIsReached(t *testing.T) {
	t.Parallel()
	const partitions, behind, barrier = 128, 20, 5
	r := newRig(t, kafkatest.Fake(t), partitions, sums)
	pad := bytes.Repeat([]byte("x"), 6_000)
	var records []*kgo.Record
	for p := range int32(partitions) {
		for i := range behind {
			records = append(records, &kgo.Record{Topic: r.topic, Partition: p, Value: fmt.Appendf(nil, `{"k":"key-%d","v":%d,"pad":%q}`, i, p, pad)})
		}
	}
	kafkatest.ProduceRecords(t, r.brokers, records)
	ahead := job.Ref{Job: r.ref.Job, Number: 2}
	newVersion(t, r.pool, ahead, r.layout, job.Live, mustJSON(t, r.spec))
	r.startLive()
	inTx(t, r.pool, func(tx *pg.Tx) error {
		for _, f := range r.frozen(0) {
			f.From, f.To = barrier, barrier
			if err := (Store{}).Follow(t.Context(), tx, ahead, f); err != nil {
				return err
			}
		}
		return nil
	})
	if err := hold(t, r.pool, "me", time.Hour, r.ref, ahead); err != nil {
		t.Fatal(err)
	}
	r.agent("a", func(e *Engine) { e.config.Memory = 40_000_000 })
	kafkatest.Until(t, "the barrier is reached", func() bool { return reached(t, r.pool, "me", false) })
	if err := (Store{}).Release(t.Context(), r.pool, "me"); err != nil {
		t.Fatal(err)
	}
	r.caughtUp()
	r.equal()
}
