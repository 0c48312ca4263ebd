package speedlayer

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pg"
)

// heard keeps what is logged. Guarded by mu.
type heard struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (h *heard) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(b)
}

// line is the first line with all of these in it.
func (h *heard) line(parts ...string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
lines:
	for line := range strings.Lines(h.text.String()) {
		for _, p := range parts {
			if !strings.Contains(line, p) {
				continue lines
			}
		}
		return line
	}
	return ""
}

// TestACopyThatIsNotTakenInTimeHalvesItsSegment: as any other statement that takes too long. Whether the rows still fit into what is
// between the two ends, and their answer does not come, or the next piece of them is not taken.
func TestACopyThatIsNotTakenInTimeHalvesItsSegment(t *testing.T) {
	t.Parallel()
	for name, long := range map[string]int{"the answer does not come": 0, "the next piece is not taken": 4_000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, kafkatest.Fake(t), 1, sums)
			records := make([]*kgo.Record, splittable+10)
			for i := range records {
				key := 10
				if i < long {
					key = 1_900
				}
				records[i] = &kgo.Record{Topic: r.topic, Value: fmt.Appendf(nil, `{"k":"%0*d","v":%d}`, key, i, i)}
			}
			kafkatest.ProduceRecords(t, r.brokers, records)
			r.startReplay(0)
			log := &heard{}
			inTx(t, r.pool, func(tx *pg.Tx) error {
				if _, err := tx.Exec(t.Context(), "LOCK TABLE "+pg.Ident("public", r.ref.Staging())); err != nil {
					return err
				}
				stop := r.agent("a", func(e *Engine) {
					e.config.Lease, e.config.Timeout, e.Log = 10*time.Second, 300*time.Millisecond, slog.New(slog.NewTextHandler(log, nil))
				})
				defer stop()
				kafkatest.Until(t, "the segment is halved, and it is said why", func() bool {
					return log.line("did not take the rows of a COPY for 300ms", "sums/v1", r.topic+"/0 [0,10010)", "two segments, cut at offset 5005") != ""
				})
				return nil
			})
			r.agent("b", nil)
			r.build()
			r.caughtUp()
			r.equal()
			if n := r.one(`SELECT count(*) FROM kappactl.segment`); n < 2 {
				t.Errorf("%d segments", n)
			}
		})
	}
}
