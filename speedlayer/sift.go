package speedlayer

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/format"
)

const (
	// splittable is the least length of a segment that is halved when it fails as a whole and no record alone is to blame.
	splittable = 10_000
	// mostBlamed is how many records of one segment are looked for at once; with more the segment is split behind them.
	mostBlamed = 20_000
	// mostAttempts is how often a segment is begun that no worker comes to the end of: its agent ended, or it is too much.
	mostAttempts = 5
)

// sift reads a segment whose statement failed because of its records, or as too much, again, in batches held in memory,
// and halves only a batch that fails, until the records to blame are found: they are dead letters, and the segment is
// replayed without them. When every batch passes alone, or the rest fails without them too, the segment is halved.
func (w *worker) sift(ctx context.Context, g segment, cause error) error {
	skip := map[int64]format.Reject{}
	fails := ofData
	if costly(cause) {
		fails = func(err error) bool { return ofData(err) || costly(err) }
	}
	reached, err := w.probeAll(ctx, g, fails, func(rec *kgo.Record, why format.Reject) error {
		if len(skip) == mostBlamed {
			return &splitAt{rec.Offset}
		}
		skip[rec.Offset] = why
		return nil
	})
	var many *splitAt
	switch {
	case errors.As(err, &many):
		return w.split(ctx, g, many.offset)
	case err != nil:
		return err
	case reached > g.FromOffset && reached < g.ToOffset: // as far as it may be read at once; what lies behind was not looked at
		return w.split(ctx, g, reached)
	case len(skip) > 0:
		if cause = w.attempt(ctx, g, skip); cause == nil || !fails(cause) {
			return cause
		}
	}
	switch {
	case g.length() >= splittable:
		return w.split(ctx, g, g.middle())
	case costly(cause) && g.Attempts < mostAttempts:
		return cause
	}
	return &stopped{g.partition, queryFault(g.partition, g.span(), fmt.Errorf("segment %d: %w", g.ID, cause))}
}

// splitAt ends a search that has found enough for one segment.
type splitAt struct{ offset int64 }

func (e *splitAt) Error() string {
	return fmt.Sprintf("more records than are looked for at once, up to offset %d", e.offset)
}

// probeAll probes the segment batch by batch and hands the records that fail alone to found. It says how far it got.
func (w *worker) probeAll(
	ctx context.Context, g segment, fails func(error) bool, found func(*kgo.Record, format.Reject) error,
) (reached int64, err error) {
	var held []*kgo.Record
	size := 0
	err = w.fetch(ctx, g, raw, func() bool { return false }, func(c chunk) error {
		held, size, reached = append(held, c.records...), size+c.bytes, c.next
		if len(held) < batchRecords && size < batchBytes {
			return nil
		}
		batch := held
		held, size = nil, 0
		return w.finder.within(ctx, batch, fails, found)
	})
	if err != nil {
		return reached, err
	}
	return reached, w.finder.within(ctx, held, fails, found)
}

// batches decodes records held in memory as the source of a feed. Records that are rejected go to reject, which may be
// nil.
func batches(d *format.Decoder, records []*kgo.Record,
	reject func(*kgo.Record, *format.Reject),
) func() (arrow.RecordBatch, error) {
	if d.Len() > 0 { // of an attempt that was given up
		d.Take().Release()
	}
	return func() (arrow.RecordBatch, error) {
		for len(records) > 0 && !full(d) {
			if r := d.Append(records[0]); r != nil && reject != nil {
				reject(records[0], r)
			}
			records = records[1:]
		}
		if d.Len() == 0 {
			return nil, nil
		}
		return d.Take(), nil
	}
}
