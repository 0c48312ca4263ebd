package devstack

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
)

const (
	// maxBuffered bounds the unacknowledged records: 64 MiB.
	maxBuffered = 64 << 20
	// progressEvery is the shortest interval between calls of Progress.
	progressEvery = 250 * time.Millisecond
)

// writer produces rows: idempotent, acknowledged by all replicas, uncompressed (decompression would cost a replay more
// memory than the bytes saved on disk are worth). write and finish belong to one goroutine; mu guards what
// acknowledgements change.
type writer struct {
	config   LoadConfig
	topic    topic
	cl       *kgo.Client
	byKey    kgo.TopicPartitioner // Java's murmur2, as in most other clients
	sent     int64
	began    time.Time
	reported time.Time

	mu      sync.Mutex
	records int64
	bytes   int64
	err     error
}

func newWriter(c LoadConfig, t topic) (*writer, error) {
	cl, err := kafka.NewClient(c.Kafka,
		kgo.DefaultProduceTopic(t.name),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.MaxBufferedRecords(1<<20),
		kgo.MaxBufferedBytes(maxBuffered),
		kgo.ProducerLinger(5*time.Millisecond),
		kgo.RecordDeliveryTimeout(30*time.Second),
	)
	if err != nil {
		return nil, err
	}
	now := c.Now()
	return &writer{
		config: c, topic: t, cl: cl, byKey: kgo.StickyKeyPartitioner(nil).ForTopic(t.name), began: now, reported: now,
	}, nil
}

func (w *writer) close() { w.cl.Close() }

// write passes a batch of rows to the client, at the configured rate.
func (w *writer) write(ctx context.Context, batch []row) error {
	for len(batch) > 0 {
		part := batch
		if w.config.Rate > 0 {
			part = batch[:min(int64(len(batch)), max(1, w.config.Rate/50))]
			if err := w.pace(ctx); err != nil {
				return err
			}
		}
		w.produce(ctx, part)
		batch = batch[len(part):]
		if err := w.failed(ctx); err != nil {
			return err
		}
		w.progress()
	}
	return nil
}

// pace waits until the next row is due.
func (w *writer) pace(ctx context.Context) error {
	due := w.began.Add(time.Duration(float64(w.sent) / float64(w.config.Rate) * float64(time.Second)))
	t := time.NewTimer(due.Sub(w.config.Now()))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (w *writer) produce(ctx context.Context, batch []row) {
	records := make([]kgo.Record, len(batch))
	first := w.sent
	done := func(r *kgo.Record, err error) {
		if err != nil {
			err = w.blame(records, first, r, err)
		}
		w.acknowledge(r, err)
	}
	for i, row := range batch {
		r := &records[i]
		r.Key, r.Value = row.key, row.value
		if row.key == nil {
			r.Partition = int32((first + int64(i)) % int64(w.topic.partitions))
		} else {
			r.Partition = int32(w.byKey.Partition(r, w.topic.partitions))
		}
		w.cl.Produce(ctx, r, done)
	}
	w.sent += int64(len(batch))
}

// blame names the row that caused an error, if only that row did.
func (w *writer) blame(records []kgo.Record, first int64, r *kgo.Record, err error) error {
	if !errors.Is(err, kerr.MessageTooLarge) {
		return fmt.Errorf("write to topic %s: %w", w.topic.name, err)
	}
	n := first
	for i := range records {
		if r == &records[i] {
			n += int64(i) + 1
		}
	}
	return &job.Refusal{
		Code: job.ExitUsage,
		Cause: fmt.Sprintf("row %d of %s is a record of %d bytes, more than topic %s accepts", n, w.config.File, len(r.Value),
			w.topic.name),
		Next: "raise max.message.bytes of the topic",
		Err:  err,
	}
}

func (w *writer) acknowledge(r *kgo.Record, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		if w.err == nil {
			w.err = err
		}
		return
	}
	w.records++
	w.bytes += int64(len(r.Key) + len(r.Value))
}

func (w *writer) failed(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func (w *writer) loaded() Loaded {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Loaded{
		Topic: w.topic.name, Partitions: w.topic.partitions, Created: w.topic.created,
		Records: w.records, Bytes: w.bytes, Seconds: w.config.Now().Sub(w.began).Seconds(),
	}
}

func (w *writer) progress() {
	now := w.config.Now()
	if w.config.Progress == nil || now.Sub(w.reported) < progressEvery {
		return
	}
	w.reported = now
	w.config.Progress(w.loaded())
}

// finish waits for the unacknowledged records, unless err reports a failure already.
func (w *writer) finish(ctx context.Context, err error) (Loaded, error) {
	if err == nil {
		if err = w.cl.Flush(ctx); err == nil {
			err = w.failed(ctx)
		}
	}
	return w.loaded(), err
}
