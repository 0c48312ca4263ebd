package verify

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/format"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/query"
)

// judge finds out whether records fail on their own. It uses the agents' statement in a session of its own, because it
// runs while another statement reads the log. One goroutine owns it.
type judge struct {
	ctx     context.Context
	run     *run
	session *query.Session
	decoder *format.Decoder
}

func (r *run) newJudge(ctx context.Context) (*judge, error) {
	session, err := query.Open(ctx, query.Config{Memory: r.Memory / 4, Temp: r.Temp})
	if err != nil {
		return nil, err
	}
	decoder, err := format.New(r.spec.Source, r.fields)
	if err != nil {
		return nil, errors.Join(err, session.Close())
	}
	return &judge{ctx: ctx, run: r, session: session, decoder: decoder}, nil
}

func (j *judge) close() error {
	j.decoder.Close()
	return j.session.Close()
}

// errRefused reports that at least one record of a batch cannot be processed.
var errRefused = errors.New("a record cannot be processed")

// try returns errRefused if the query fails over these records, or PostgreSQL rejects its values. It leaves out records
// that the decoder rejects.
func (j *judge) try(records []*kgo.Record) error {
	for _, rec := range records {
		_ = j.decoder.Append(rec)
	}
	if j.decoder.Len() == 0 {
		return nil
	}
	batch := j.decoder.Take()
	defer batch.Release()
	var columns [][]*string
	err := j.session.Run(j.ctx, j.run.land, newOne(batch), func(b arrow.RecordBatch) error {
		columns = appendTexts(columns, b)
		return nil
	})
	var exec *query.ExecError
	switch {
	case errors.As(err, &exec):
		return errRefused
	case err != nil:
		return err
	case len(columns) == 0:
		return nil
	}
	if j.longKey(columns) {
		return errRefused
	}
	args := make([]any, len(columns))
	for i, c := range columns {
		args[i] = c
	}
	_, err = j.run.Pool.Exec(j.ctx, query.Casts(j.run.Layout), args...)
	if code := pg.Code(err); len(code) == 5 && (code[:2] == "22" || code[:2] == "23" || code[:2] == "54") {
		return errRefused
	}
	return err
}

func (j *judge) longKey(columns [][]*string) bool {
	for row := range columns[0] {
		n := 0
		for _, c := range columns[:len(j.run.Layout.Keys)] {
			if c[row] != nil {
				n += len(*c[row])
			}
		}
		if n > query.MaxKeyBytes {
			return true
		}
	}
	return false
}

// appendTexts copies the text columns of b, which is only valid during the call.
func appendTexts(columns [][]*string, b arrow.RecordBatch) [][]*string {
	if columns == nil {
		columns = make([][]*string, b.NumCols())
	}
	for i, col := range b.Columns() {
		texts, ok := col.(array.StringLike)
		for row := range int(b.NumRows()) {
			if !ok || texts.IsNull(row) {
				columns[i] = append(columns[i], nil)
				continue
			}
			value := strings.Clone(texts.Value(row))
			columns[i] = append(columns[i], &value)
		}
	}
	return columns
}

// search reads the log once more and finds the records that fail alone, by halving the batches that fail. It reports
// whether there are any.
func search(log *logReader, j *judge) (found bool, err error) {
	defer log.restart()
	log.restart()
	for {
		for len(log.pending) < batchRecords {
			more, err := log.fetch()
			if err != nil {
				return found, err
			}
			if !more {
				break
			}
		}
		if len(log.pending) == 0 {
			return found, nil
		}
		n := min(len(log.pending), batchRecords)
		if err := halve(log.pending[:n], j, &found); err != nil {
			return found, fmt.Errorf("find records over which the query fails: %w", err)
		}
		log.pending = log.pending[n:]
	}
}

func halve(records []pendingRecord, j *judge, found *bool) error {
	raw := make([]*kgo.Record, len(records))
	for i, p := range records {
		raw[i] = p.record
	}
	err := j.try(raw)
	switch {
	case !errors.Is(err, errRefused):
		return err
	case len(records) == 1:
		records[0].span.refuse(records[0].record.Offset)
		*found = true
		return nil
	}
	half := len(records) / 2
	if err := halve(records[:half], j, found); err != nil {
		return err
	}
	return halve(records[half:], j, found)
}
