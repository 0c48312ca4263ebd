package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/format"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
)

const (
	batchRecords = 20_000
	// patience is how long the brokers may give nothing before the comparison ends with what they said last.
	patience = 60 * time.Second
)

// logReader reads spans from the log as Arrow batches: what the engine pulls from. One goroutine owns it.
type logReader struct {
	ctx     context.Context
	now     func() time.Time
	fetcher *kafka.Fetcher
	decoder *format.Decoder
	spans   []*span
	size    int    // records a batch
	judge   *judge // of records that are stored as dead letters

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

// Retain and Release leave the reader to whoever made it.
func (*logReader) Retain()  {}
func (*logReader) Release() {}

func (r *logReader) Schema() *arrow.Schema          { return r.decoder.Schema() }
func (r *logReader) RecordBatch() arrow.RecordBatch { return r.batch }

// Record is the deprecated name of RecordBatch; the interface asks for it.
func (r *logReader) Record() arrow.RecordBatch { return r.batch }
func (r *logReader) Err() error                { return r.err }

// Next decodes the next batch. It is false at the end of the spans and after an error.
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

// decode judges a record as agents do: the query is asked only about those that an agent found it to fail over.
func (r *logReader) decode(p pendingRecord) error {
	r.records++
	offset := p.record.Offset
	refused := p.span.refused[offset]
	if !refused && r.judge != nil && p.span.letter(offset) {
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

// restart begins anew at the start of every span.
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

// fetch fills pending. It is false when all spans are done.
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
			case f.Err != nil && kafka.Final(f.Err):
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
			return false, fmt.Errorf("read the log: nothing came for %s: %w", patience, last)
		}
	}
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

// accept takes what is new and inside the span. It says whether the span moved.
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
