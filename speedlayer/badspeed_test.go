package speedlayer

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

// TestRecordsThatFailInTheQueryCostLittle: at 1 % of them a live version took a ninetieth of the records, because each was searched
// for by halving its batch. Measured is the time that this process is at work, which other processes do not change.
func TestRecordsThatFailInTheQueryCostLittle(t *testing.T) {
	const n = 30_000
	took := map[int]time.Duration{}
	for _, bad := range []int{0, 1, 50} { // in a hundred
		r := newRig(t, kafkatest.Fake(t), 1, failing)
		kafkatest.ProduceMany(t, r.brokers, n, func(i int) *kgo.Record {
			v := i % 500
			if i%100 < bad {
				v = 777
			}
			return &kgo.Record{Topic: r.topic, Value: fmt.Appendf(nil, `{"k":"key-%d","v":%d}`, i%50, v)}
		})
		r.startLive()
		began := worked(t)
		stop := r.agent("a", nil)
		kafkatest.Until(t, "all is read", func() bool { return r.next(0) == n })
		stop()
		took[bad] = worked(t) - began
		if got := r.one(`SELECT dead_letters FROM kappactl.position`); got != n*bad/100 {
			t.Errorf("%d %%: %d dead letters", bad, got)
		}
	}
	for bad, most := range map[int]time.Duration{1: 3, 50: 10} {
		t.Logf("%d %% bad records: %s, %.1f times the %s of none", bad, took[bad], float64(took[bad])/float64(took[0]), took[0])
		if took[bad] > most*took[0] {
			t.Errorf("%d %% bad records cost more than a factor of %d", bad, most)
		}
	}
}

// worked is for how long this process was at work so far, on all processors.
func worked(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
