package speedlayer

import (
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
)

// Metrics are the counters of an Engine since its start. They are safe for concurrent use; the zero value is ready.
type Metrics struct {
	Records       atomic.Int64 // records in committed segments and batches
	Bytes         atomic.Int64 // of their keys and values
	DeadLetters   atomic.Int64
	Segments      atomic.Int64 // done
	Commits       atomic.Int64 // live
	CommitNanos   atomic.Int64 // of the live commits' transactions
	CommitRetries atomic.Int64 // live transactions that were rolled back and run again
	LeaseLosses   atomic.Int64 // segments and positions that another worker took
	Faults        atomic.Int64 // written
	ThrottleNanos atomic.Int64 // told by the brokers to wait

	// Committed, when set, is called after each live commit. It must not block.
	Committed func(ref job.Ref, records int, took time.Duration)
}

func (m *Metrics) committed(ref job.Ref, records int, took time.Duration) {
	m.Commits.Add(1)
	m.CommitNanos.Add(took.Nanoseconds())
	m.Records.Add(int64(records))
	if m.Committed != nil {
		m.Committed(ref, records, took)
	}
}

// throttled counts what brokers report of their quotas.
type throttled struct {
	metrics *Metrics
	run     *atomic.Int64 // of one version, may be nil
}

var _ kgo.HookBrokerThrottle = throttled{}

// OnBrokerThrottle is called by the client for each answer that carried a throttle.
func (t throttled) OnBrokerThrottle(_ kgo.BrokerMetadata, interval time.Duration, _ bool) {
	t.metrics.ThrottleNanos.Add(interval.Nanoseconds())
	if t.run != nil {
		t.run.Add(interval.Nanoseconds())
	}
}
