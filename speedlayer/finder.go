package speedlayer

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/format"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/query"
)

// finder searches a failing batch for the records that fail alone. Its owner is that of the session and the decoder.
type finder struct {
	*run
	session *query.Session
	decoder *format.Decoder
	places  *format.Decoder // gives the sieve its fields; nil: there is no sieve
}

func newFinder(r *run, s *query.Session, d *format.Decoder) (*finder, error) {
	f := &finder{run: r, session: s, decoder: d}
	sieve := r.compiled.Sieve
	if sieve == nil {
		return f, nil
	}
	var err error
	f.places, err = format.New(r.spec.Source, sieve.Fields)
	return f, err
}

func (f *finder) close() {
	if f != nil && f.places != nil {
		f.places.Close()
	}
}

// within finds the records that fail alone, when the batch fails.
func (f *finder) within(
	ctx context.Context, records []*kgo.Record, fails func(error) bool, found func(*kgo.Record, format.Reject) error,
) error {
	if len(records) == 0 {
		return nil
	}
	probe := func(records []*kgo.Record) error { return f.probe(ctx, f.session, f.decoder, records) }
	if err := probe(records); err == nil || !fails(err) {
		return err
	}
	bad := f.sift(ctx, records)
	var rest []*kgo.Record
	for _, rec := range records {
		why, isBad := bad[rec]
		if !isBad {
			rest = append(rest, rec)
			continue
		}
		if err := found(rec, why); err != nil {
			return err
		}
	}
	return blame(rest, fails, probe, func(rec *kgo.Record, err error) error { return found(rec, f.blamed(err)) })
}

// sift finds with one statement the records over which an expression of the query fails. The first that fails in an
// expression is probed alone, for the reason, and for proof that it does. What the sieve does not find has to be
// searched for.
func (f *finder) sift(ctx context.Context, records []*kgo.Record) map[*kgo.Record]format.Reject {
	byPlace := make(map[place]*kgo.Record, len(records))
	for _, rec := range records {
		byPlace[place{rec.Topic, rec.Partition, rec.Offset}] = rec
	}
	sieved, err := f.sieved(ctx, records)
	if err != nil {
		f.log.Debug("bad records are searched for one by one", "error", err)
		return nil
	}
	out := map[*kgo.Record]format.Reject{}
	reasons := map[string]*format.Reject{}
	for _, s := range sieved {
		rec := byPlace[s.place]
		if rec == nil {
			continue
		}
		why, known := reasons[s.which]
		if !known {
			err := f.probe(ctx, f.session, f.decoder, []*kgo.Record{rec})
			if ofData(err) {
				first := f.blamed(err)
				out[rec] = first
				first.Detail = "as for " + offsetName(job.Partition{Topic: rec.Topic, ID: rec.Partition}, rec.Offset) + ": " +
					first.Detail
				why = &first
			}
			reasons[s.which] = why
			continue
		}
		if why != nil {
			out[rec] = *why
		}
	}
	return out
}

// place is where a record is in the log.
type place struct {
	topic     string
	partition int32
	offset    int64
}

// sieved is a record that the sieve names, with the number of the expression that fails.
type sieved struct {
	place
	which string
}

var errNoSieve = errors.New("the query has no sieve")

// sieved runs the sieve over records.
func (f *finder) sieved(ctx context.Context, records []*kgo.Record) ([]sieved, error) {
	if f.places == nil {
		return nil, errNoSieve
	}
	in := &feed{schema: f.places.Schema(), pull: batches(f.places, records, nil)}
	defer in.Release()
	var out []sieved
	err := f.query(ctx, f.session, f.compiled.Sieve.SQL, in, func(b arrow.RecordBatch) error {
		var columns [4]array.StringLike
		for i := range columns {
			c, ok := b.Column(i).(array.StringLike)
			if !ok {
				return errNoSieve
			}
			columns[i] = c
		}
		for row := range int(b.NumRows()) {
			partition, err := strconv.ParseInt(columns[1].Value(row), 10, 32)
			offset, offsetErr := strconv.ParseInt(columns[2].Value(row), 10, 64)
			if err := errors.Join(err, offsetErr); err != nil {
				return err
			}
			at := place{strings.Clone(columns[0].Value(row)), int32(partition), offset} // the engine owns the bytes
			out = append(out, sieved{at, strings.Clone(columns[3].Value(row))})
		}
		return nil
	})
	return out, err
}
