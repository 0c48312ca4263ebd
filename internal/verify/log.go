package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/format"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
)

const (
	batchRecords = 20_000
	// patience is how long a comparison waits for brokers that return nothing before it ends with their last error.
	patience = 60 * time.Second
)

// logReader reads the spans from the log as Arrow batches, which the engine pulls. One goroutine owns it.
type logReader struct {
	ctx     context.Context
	now     func() time.Time
	fetcher *archive.Reader
	decoder *format.Decoder
	spans   []*span
	size    int    // records per batch
	judge   *judge // for records that are stored as dead letters

	records int64
	pending []pendingRecord
	batch   arrow.RecordBatch
	err     error
}

type pendingRecord struct {
	span   *span
	record *kgo.Record
}

var _ array.RecordReader = (*logReader)(nil)

// Retain and Release do nothing: the creator owns the reader.
func (*logReader) Retain()  {}
func (*logReader) Release() {}

func (r *logReader) Schema() *arrow.Schema          { return r.decoder.Schema() }
func (r *logReader) RecordBatch() arrow.RecordBatch { return r.batch }

// Record is the deprecated name of RecordBatch, which the interface requires.
func (r *logReader) Record() arrow.RecordBatch { return r.batch }
func (r *logReader) Err() error                { return r.err }

// Next decodes the next batch. It returns false at the end of the spans and after an error.
func (r *logReader) Next() bool {
	r.drop()
	for r.err == nil {
		for len(r.pending) > 0 && r.decoder.Len() < r.size {
			if r.err = r.decode(r.pending[0]); r.err != nil {
				return false
			}
			r.pending = r.pending[1:]
		}
		if r.decoder.Len() >= r.size {
			return r.take()
		}
		more, err := r.fetch()
		if err != nil {
			r.err = err
			return false
		}
		if !more {
			return r.decoder.Len() > 0 && r.take()
		}
	}
	return false
}

func (r *logReader) take() bool {
	r.batch = r.decoder.Take()
	return true
}

func (r *logReader) drop() {
	if r.batch != nil {
		r.batch.Release()
		r.batch = nil
	}
}

// decode accepts or rejects a record as agents do. It runs the query only over records that an agent stored as dead
// letters because the query failed.
func (r *logReader) decode(p pendingRecord) error {
	r.records++
	offset := p.record.Offset
	refused := p.span.refused[offset]
	if !refused && r.judge != nil && p.span.hasDeadLetter(offset) {
		err := r.judge.try([]*kgo.Record{p.record})
		if err != nil && !errors.Is(err, errRefused) {
			return err
		}
		refused = err != nil
	}
	if refused || r.decoder.Append(p.record) != nil {
		p.span.rejected = append(p.span.rejected, offset)
	}
	return nil
}

// restart starts again at the start of every span.
func (r *logReader) restart() {
	r.drop()
	r.pending, r.records, r.err = nil, 0, nil
	if r.decoder.Len() > 0 {
		r.decoder.Take().Release()
	}
	for _, s := range r.spans {
		s.rejected, s.next = nil, s.start
	}
}

// fetch fills pending. It returns false when all spans are read.
func (r *logReader) fetch() (more bool, err error) {
	since, last := r.now(), errors.New("no answer")
	for {
		cursors := r.cursors()
		if len(cursors) == 0 {
			return false, nil
		}
		fetched, err := r.fetcher.Fetch(r.ctx, cursors)
		if err != nil {
			return false, fmt.Errorf("read the log: %w", err)
		}
		moved := false
		for _, f := range fetched {
			switch {
			case damaged(f.Err):
				return false, &job.Refusal{
					Code: job.ExitGap, Err: f.Err, Cause: f.Err.Error(), Next: "kappactl archive verify " + f.Topic,
				}
			case f.Err != nil && archive.Final(f.Err):
				return false, &job.Refusal{
					Code: job.ExitGap, Err: f.Err,
					Cause: "the log changed while it was read: " + f.Err.Error(),
					Next:  "run verify again",
				}
			case f.Err != nil:
				last = f.Err
			default:
				moved = r.accept(f) || moved
			}
		}
		if moved {
			return true, nil
		}
		if r.now().Sub(since) > patience {
			return false, fmt.Errorf("read the log: no data for %s: %w", patience, last)
		}
	}
}

// damaged reports whether a file of the archive cannot be read.
func damaged(err error) bool {
	var d *archive.DamagedError
	return errors.As(err, &d)
}

func (r *logReader) cursors() []kafka.Cursor {
	var out []kafka.Cursor
	for _, s := range r.spans {
		if !s.done() {
			out = append(out, kafka.Cursor{Partition: s.Partition, Next: s.next, LeaderEpoch: s.epoch, Known: s.To})
		}
	}
	return out
}

// accept appends the fetched records that are new and inside the span. It reports whether the span advanced.
func (r *logReader) accept(f kafka.Fetched) bool {
	for _, s := range r.spans {
		if s.Partition != f.Partition {
			continue
		}
		before := s.next
		for _, rec := range f.Records {
			if rec.Offset >= before && s.covers(rec.Offset) {
				r.pending = append(r.pending, pendingRecord{s, rec})
			}
		}
		s.advance(f.Next)
		return s.next > before
	}
	return false
}
