package speedlayer

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/format"
	"github.com/kappactl/kappactl/internal/job"
)

const (
	// splittable is the least length of a segment that is halved when it fails as a whole and no record alone is to blame.
	splittable = 10_000
	// reasonKeyTooLong is the reason of a dead letter whose group key no index can hold.
	reasonKeyTooLong = "key_too_long"
)

// sift reads a segment whose statement failed again, in batches held in memory, and halves only a batch that fails, until
// the records to blame are found. Records whose key is too long become dead letters and the segment is replayed without
// them; any other record stops the version. When every batch passes alone the segment is halved.
func (w *worker) sift(ctx context.Context, g segment, cause *dataError) error {
	skip := map[int64]format.Reject{}
	err := w.probeAll(ctx, g, func(rec *kgo.Record, err error) error {
		var long *keyTooLong
		if !errors.As(err, &long) {
			return &stopped{g.partition, queryFault(g.partition, job.Range{From: rec.Offset, To: rec.Offset + 1},
				fmt.Errorf("segment %d: %w", g.ID, err))}
		}
		skip[rec.Offset] = format.Reject{Reason: reasonKeyTooLong, Detail: long.Error()}
		return nil
	})
	switch {
	case err != nil:
		return err
	case len(skip) > 0:
		return w.attempt(ctx, g, skip)
	case g.length() >= splittable:
		return w.split(ctx, g, g.middle())
	}
	return &stopped{g.partition, queryFault(g.partition, g.span(), fmt.Errorf("segment %d: %w", g.ID, cause))}
}

// probeAll probes the segment batch by batch and hands the records that fail alone to found.
func (w *worker) probeAll(ctx context.Context, g segment, found func(*kgo.Record, error) error) error {
	var held []*kgo.Record
	probe := func(records []*kgo.Record) error { return w.probe(ctx, records) }
	err := w.fetch(ctx, g, func() bool { return false }, func(c chunk) error {
		held = append(held, c.records...)
		for len(held) >= batchRecords {
			if err := blame(held[:batchRecords], probe, found); err != nil {
				return err
			}
			held = append([]*kgo.Record(nil), held[batchRecords:]...)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return blame(held, probe, found)
}

// probe runs the statement over records and drops its rows.
func (w *worker) probe(ctx context.Context, records []*kgo.Record) error {
	in := &feed{schema: w.decoder.Schema(), pull: batches(w.decoder, records, nil)}
	defer in.Release()
	return classify(w.session.Run(ctx, w.land, in, func(b arrow.RecordBatch) error {
		columns, err := texts(w.layout, b)
		for row := 0; err == nil && row < int(b.NumRows()); row++ {
			err = checkKey(columns, len(w.layout.Keys), row)
		}
		return err
	}))
}

// blame halves records until those that fail alone are found. Only a *dataError of probe is a failure of records; any
// other error, and one of found, ends the search.
func blame[T any](records []T, probe func([]T) error, found func(T, error) error) error {
	if len(records) == 0 {
		return nil
	}
	err := probe(records)
	var data *dataError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &data):
		return err
	case len(records) == 1:
		return found(records[0], data)
	}
	half := len(records) / 2
	if err := blame(records[:half], probe, found); err != nil {
		return err
	}
	return blame(records[half:], probe, found)
}

// batches decodes records held in memory as the source of a feed. Records that are rejected go to reject, which may be nil.
func batches(d *format.Decoder, records []*kgo.Record, reject func(*kgo.Record, *format.Reject)) func() (arrow.RecordBatch, error) {
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
