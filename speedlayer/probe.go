package speedlayer

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/format"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/query"
)

// The reasons of dead letters that the query finds, beside those of package query's guards; those that decoding finds
// are in package format.
const (
	reasonKeyTooLong = query.KeyTooLong
	reasonQuery      = query.QueryError
)

// blamed is why a record that fails alone is a dead letter.
func (r *run) blamed(err error) format.Reject {
	var long *keyTooLong
	if errors.As(err, &long) {
		return format.Reject{Reason: reasonKeyTooLong, Detail: long.Error()}
	}
	var resource *query.ResourceError
	if errors.As(err, &resource) {
		return tooExpensive(resource)
	}
	if reason, detail, ok := query.Guarded(err); ok {
		return format.Reject{Reason: reason, Detail: detail}
	}
	return format.Reject{Reason: reasonQuery, Detail: r.compiled.Explain(err)}
}

// probe runs the statement over records and drops its rows. A *dataError is an error that these records raise by
// themselves, in the engine or when PostgreSQL reads their values; what is stored already does not count.
func (r *run) probe(ctx context.Context, s *query.Session, d *format.Decoder, records []*kgo.Record) error {
	in := &feed{schema: d.Schema(), pull: batches(d, records, nil)}
	defer in.Release()
	rows := r.newTable()
	err := r.query(ctx, s, r.land, in, func(b arrow.RecordBatch) error { return rows.add(r.layout, b) })
	if err != nil || rows.rows == 0 {
		return classify(err)
	}
	args := make([]any, len(rows.columns))
	for i, c := range rows.columns {
		args[i] = c
	}
	err = r.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := setTimeouts(ctx, tx, r.config.Timeout, r.idle()); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, query.Casts(r.layout), args...)
		return err
	})
	if err != nil {
		return classify(fmt.Errorf("read %d rows: %w", rows.rows, err))
	}
	return nil
}

// ofData reports whether a probe failed because of the records' contents.
func ofData(err error) bool {
	var data *dataError
	return errors.As(err, &data)
}

// costly reports whether a statement exceeded its limit of memory, rows or time.
func costly(err error) bool {
	var resource *query.ResourceError
	return errors.As(err, &resource) && resource.Costly
}

// blame halves records until those that fail alone are found. Only what fails takes for one is a failure of records;
// any other error of probe, and one of found, ends the search.
func blame[T any](records []T, fails func(error) bool, probe func([]T) error, found func(T, error) error) error {
	if len(records) == 0 {
		return nil
	}
	err := probe(records)
	switch {
	case err == nil:
		return nil
	case !fails(err):
		return err
	case len(records) == 1:
		return found(records[0], err)
	}
	half := len(records) / 2
	if err := blame(records[:half], fails, probe, found); err != nil {
		return err
	}
	return blame(records[half:], fails, probe, found)
}
