package archiver_test

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/batchlayer/archiver"
	"github.com/kappactl/kappactl/internal/kafkatest"
)

// TestMemoryStaysBoundedWithManyPartitions archives records of 168 bytes from 128 partitions of a real broker. A soak run has ten
// million of them, an ordinary one enough to fill the memory of records several times.
func TestMemoryStaysBoundedWithManyPartitions(t *testing.T) {
	brokers := kafkatest.Real(t)
	const partitions = 128
	records := 250_000
	if os.Getenv("KAPPACTL_SOAK") != "" {
		records = 10_000_000
	}
	w := newWorld(t, brokers, partitions, nil)
	w.want(5*time.Second, 8<<20)
	kafkatest.ProduceMany(t, brokers, records, func(i int) *kgo.Record {
		return &kgo.Record{Topic: w.topic, Partition: int32(i % partitions), Value: fmt.Appendf(nil,
			`{"url":"https://example.com/page/%04d","user":"u%08d","ts":"2026-01-%02dT%02d:00:00Z","duration_ms":%d,"agent":"Mozilla/5.0 (X11; Linux x86_64)","ok":true}`,
			i*7919%1000, i*104729%1_000_000, i%28+1, i%24, i*31%5000)}
	}, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	peak := uint64(0)
	began, busy := time.Now(), cpu(t)
	w.start(archiver.Config{Memory: 16 << 20})
	var archived, bytes int64
	kafkatest.UntilEvery(t, 100*time.Millisecond, "all is archived", func() bool {
		runtime.ReadMemStats(&now)
		peak = max(peak, now.HeapInuse)
		err := w.pool.QueryRow(t.Context(), `SELECT coalesce(sum(records), 0)::bigint, coalesce(sum(bytes), 0)::bigint FROM kappactl.archive_file`).Scan(&archived, &bytes)
		if err != nil {
			t.Fatal(err)
		}
		return archived >= int64(records)
	})
	took := time.Since(began)
	t.Logf("%d records in %s: %.0f records/s, %.2f us of CPU and %.1f bytes a record, heap %d MB before, %d MB at most",
		archived, took.Round(time.Millisecond), float64(archived)/took.Seconds(), float64((cpu(t)-busy).Microseconds())/float64(archived),
		float64(bytes)/float64(archived), before.HeapInuse>>20, peak>>20)
	if peak > 300<<20 {
		t.Errorf("the heap grew to %d MB", peak>>20)
	}
}

// cpu is the processor time that this process has used.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
