package speedlayer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/typed"
)

const cannotFetch = "the broker does not answer a fetch"

// fetchBytes is the size of one fetch request of a replay worker: more costs memory, above all unpacked, and gains
// little.
const fetchBytes = 1 << 20

// maxUnpacked is how many bytes a segment's records may have; a larger one is split where it has got to. Typed columns
// are no records.
const maxUnpacked = 256 << 20

// maxReading is for how long a segment is read at most: one that is throttled is split where it has got to, so that its
// transaction, which may be open since its first row, does not wait for a slow reader.
const maxReading = time.Minute

// chunk is the part of a fetch that belongs to the segment.
type chunk struct {
	records []*kgo.Record
	next    int64
	epoch   int32
	bytes   int
	typed   *typed.Chunk // what is decoded already; records are then those that the decoder is to reject again. nil: nothing is
}

// fetch reads a segment from its start to its end by position and hands each piece to out. It ends early when done
// returns true or when the records turn out to be more than a segment should hold. decoded is asked for each piece
// first; false: it does not have it.
func (w *worker) fetch(
	ctx context.Context, g segment, decoded func(context.Context, kafka.Cursor) (chunk, bool, error), done func() bool,
	out func(chunk) error,
) error {
	at := kafka.Cursor{Partition: g.partition, Next: g.FromOffset, LeaderEpoch: g.LeaderEpoch, Known: g.ToOffset}
	began, answered := w.Now(), w.Now()
	partition := g.partition.String()
	defer w.troubles.works(fetching(partition))
	unpacked := 0
	hand := func(c chunk) error {
		answered = w.Now()
		if err := w.slow(ctx, c.bytes); err != nil {
			return err
		}
		at.Next, at.LeaderEpoch = c.next, c.epoch
		if c.typed == nil {
			unpacked += c.bytes
		}
		return out(c)
	}
	for at.Next < g.ToOffset && unpacked < w.unpacked && !done() &&
		(at.Next == g.FromOffset || w.Now().Sub(began) < maxReading) {
		c, ok, err := decoded(ctx, at)
		if err == nil && ok {
			err = hand(c)
		}
		if err != nil {
			return err
		}
		if ok {
			continue
		}
		fetched, err := w.fetcher.Fetch(ctx, []kafka.Cursor{at})
		if err != nil {
			return err
		}
		for _, f := range fetched {
			if f.Err != nil {
				if err := w.unanswered(ctx, g, f, answered); err != nil {
					return err
				}
				continue
			}
			w.quiet.over(cannotFetch)
			w.troubles.works(fetching(partition))
			if err := hand(within(f, g.ToOffset)); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// slow keeps to replay.max_rate and to what the database bears, and counts what was read.
func (w *worker) slow(ctx context.Context, bytes int) error {
	if err := w.throttle.take(ctx, bytes); err != nil {
		return err
	}
	if err := w.pace.ease(ctx); err != nil {
		return err
	}
	w.pace.read.Add(int64(bytes))
	return nil
}

// unanswered decides what an answer with an error means for the segment: nil, it is asked again.
func (w *worker) unanswered(ctx context.Context, g segment, f kafka.Fetched, answered time.Time) error {
	others := func() bool { return len(w.living(ctx)) > 1 }
	now := w.Now()
	var marker *archive.MarkerError
	fault := faultOf(f.Err, f.Next)
	switch {
	case fault.Kind == job.FaultArchive && errors.As(f.Err, &marker) && others(): // they may see the folder
		w.unread.Store(now.UnixNano())
		return errUnread
	case fault.Kind != job.FaultNone:
		var gap *kafka.GapError
		if errors.As(f.Err, &gap) {
			kept, err := w.archivedTo(ctx, g)
			if err != nil {
				return err
			}
			fault.From, fault.To = g.missing(gap, kept)
		}
		if fault.Kind == job.FaultArchive {
			fault.To = min(fault.To, g.ToOffset)
		}
		return &stopped{g.partition, fault}
	}
	w.quiet.warn(cannotFetch, f.Err, "topic", f.Topic, "partition", f.ID)
	w.failed(ctx, fetching(g.partition.String()), fetchFails(g.partition.String()), f.Err)
	if now.Sub(answered) >= unreadAfter*w.config.Lease && others() {
		w.unread.Store(now.UnixNano())
		return errUnread
	}
	return nil
}

// missing are the offsets that a gap leaves the segment without. A log whose end was cut off still holds what lies
// before; where retention took the start, what was read of the log has not landed and is lost with it, and what lies
// below kept is in the archive.
func (g segment) missing(e *kafka.GapError, kept int64) (from, to int64) {
	if e.Cut || e.Wanted > e.End {
		return max(e.End, g.FromOffset), g.ToOffset
	}
	return min(kept, e.Wanted), e.Start
}

// within cuts a fetch at the segment's end.
func within(f kafka.Fetched, to int64) chunk {
	c := chunk{records: f.Records, next: min(f.Next, to), epoch: f.LeaderEpoch}
	for i, rec := range c.records {
		if rec.Offset >= to {
			c.records = c.records[:i]
			break
		}
		c.bytes += len(rec.Key) + len(rec.Value)
	}
	return c
}

// offsetName names one record: topic/partition@offset.
func offsetName(p job.Partition, offset int64) string { return fmt.Sprintf("%s@%d", p, offset) }
