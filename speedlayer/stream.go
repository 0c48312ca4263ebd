package speedlayer

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/kappactl/kappactl/internal/faultpoint"
	"github.com/kappactl/kappactl/internal/format"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/typed"
)

const (
	batchRecords = 20_000   // records of an Arrow batch
	batchBytes   = 8 << 20  // and its bytes
	maxLetters   = 32 << 20 // bytes of a segment's dead letters in memory; with more the segment is split
)

// tally counts the records and bytes that a stream has read. Its owner is the decoding goroutine; others read it when
// the stream has ended.
type tally struct {
	reached int64 // everything below was delivered
	epoch   int32
	records int64
	bytes   int64
	letters []letter
	newest  newest
}

// stream reads the offsets of one segment as Arrow batches. Two goroutines run beside the statement that pulls: one
// fetches, one decodes. close ends them.
type stream struct {
	*worker
	segment segment
	skip    map[int64]format.Reject // records known to be beyond processing, by offset

	cancel  context.CancelFunc
	batches chan arrow.RecordBatch
	ended   chan struct{} // closed when both goroutines are done
	err     error         // why the stream ended early; read after ended
	tally   tally
	heavy   atomic.Bool // so many dead letters that the segment ends here

	reading, decoding stopwatch // of the two goroutines; read after ended
	waiting           stopwatch // of the statement, for a batch
}

// open starts to read the segment.
func (s *stream) open(ctx context.Context) {
	ctx, s.cancel = context.WithCancel(ctx)
	group, ctx := errgroup.WithContext(ctx)
	s.batches, s.ended = make(chan arrow.RecordBatch, 2), make(chan struct{})
	s.tally = tally{reached: s.segment.FromOffset, epoch: s.segment.LeaderEpoch}
	if s.decoder.Len() > 0 { // of an attempt that was given up
		s.decoder.Take().Release()
	}
	s.reading, s.decoding, s.waiting = stopwatch{now: s.Now}, stopwatch{now: s.Now}, stopwatch{now: s.Now}
	chunks := make(chan chunk, 1)
	group.Go(func() error {
		defer close(chunks)
		s.reading.start()
		defer s.reading.stop()
		return s.fetch(ctx, s.segment, s.decoded, s.heavy.Load, func(c chunk) error {
			s.reading.stop()
			defer s.reading.start()
			select {
			case chunks <- c:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	group.Go(func() error {
		defer close(s.batches)
		return s.decode(ctx, chunks)
	})
	go func() {
		s.err = group.Wait()
		close(s.ended)
	}()
}

// close ends the goroutines and gives back what they left.
func (s *stream) close() {
	s.cancel()
	for b := range s.batches {
		b.Release()
	}
	<-s.ended
}

// pull is the feed's source.
func (s *stream) pull() (arrow.RecordBatch, error) {
	s.waiting.start()
	b, ok := <-s.batches
	s.waiting.stop()
	if ok {
		return b, nil
	}
	<-s.ended
	return nil, s.err
}

// decode turns chunks into batches and judges each record.
func (s *stream) decode(ctx context.Context, in <-chan chunk) error {
	var letterBytes int64
	for c := range in {
		if err := s.pass(ctx, c.typed); err != nil {
			return err
		}
		s.decoding.start()
		for _, rec := range c.records {
			reject := s.append(rec)
			if reject != nil {
				if s.spec.Source.OnError.Fail {
					return &stopped{s.segment.partition, recordFault(s.segment.partition, rec, reject)}
				}
				l := newLetter(s.segment.partition, rec, reject)
				s.tally.letters = append(s.tally.letters, l)
				letterBytes += int64(l.bytes())
			}
			s.tally.count(rec)
			if full(s.decoder) {
				s.decoding.stop()
				if err := s.send(ctx); err != nil {
					return err
				}
				s.decoding.start()
			}
		}
		s.decoding.stop()
		s.tally.reached, s.tally.epoch = c.next, c.epoch
		s.reached.Store(c.next)
		if letterBytes > maxLetters {
			s.heavy.Store(true)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if s.decoder.Len() > 0 {
		return s.send(ctx)
	}
	return nil
}

// pass hands on what was decoded already.
func (s *stream) pass(ctx context.Context, c *typed.Chunk) error {
	if c == nil || c.Batch == nil {
		return nil
	}
	s.tally.records, s.tally.bytes = s.tally.records+c.Records, s.tally.bytes+c.Bytes
	s.tally.newest.note(time.UnixMilli(c.Newest))
	return s.give(ctx, c.Batch)
}

// full reports whether a batch should be handed on.
func full(d *format.Decoder) bool { return d.Len() >= batchRecords || d.Reaches(batchBytes) }

func (s *stream) append(rec *kgo.Record) *format.Reject {
	if r, known := s.skip[rec.Offset]; known {
		return &r
	}
	return s.decoder.Append(rec)
}

func (s *stream) send(ctx context.Context) error { return s.give(ctx, s.decoder.Take()) }

// give hands a batch to the statement.
func (s *stream) give(ctx context.Context, b arrow.RecordBatch) error {
	s.hit(faultpoint.SegmentReading)
	select {
	case s.batches <- b:
		return nil
	case <-ctx.Done():
		b.Release()
		return ctx.Err()
	}
}

func (t *tally) count(rec *kgo.Record) {
	t.records++
	t.bytes += int64(len(rec.Key) + len(rec.Value))
	t.newest.see(rec)
}

// recordFault is the fault of on_error: fail.
func recordFault(p job.Partition, rec *kgo.Record, r *format.Reject) job.Fault {
	detail := r.Reason
	if r.Column != "" {
		detail += " in " + r.Column
	}
	if r.Detail != "" {
		detail += ": " + r.Detail
	}
	return job.Fault{
		Kind: job.FaultRecord, From: rec.Offset, To: rec.Offset + 1,
		Detail: printable(offsetName(p, rec.Offset) + ": " + detail),
	}
}
