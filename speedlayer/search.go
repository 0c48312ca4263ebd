package speedlayer

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/format"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/query"
)

const (
	tooLongForIndex = "54000" // PostgreSQL's code for a row that is larger than one of an index may be
	// reasonIndex is why a record is a dead letter with a value that is too long for one of serve.indexes.
	reasonIndex = "index_value_too_long"
)

// search finds the records of a failed batch that fail alone: they become dead letters of the same batch, which is then
// tried again. When every record passes alone, the next batch is half as long, until one record is left that cannot be
// merged with what is stored: it stops its partition.
func (l *live) search(ctx context.Context, parts []part, cause *dataError) error {
	n := countRecords(parts)
	if n == 0 {
		return cause
	}
	found, err := l.blameAll(ctx, parts)
	switch {
	case err != nil:
		return err
	case found:
		return nil
	case n > 1:
		return l.tooMuch(parts, &query.ResourceError{Err: cause})
	}
	for _, p := range parts {
		if len(p.records) > 0 {
			offset := p.records[0].Offset
			if pg.Code(cause) == tooLongForIndex {
				l.setAside(p.partition, offset, format.Reject{Reason: reasonIndex, Detail: cause.Error()})
				return nil
			}
			p.cutAt(offset, queryFault(p.partition, job.Range{From: offset, To: offset + 1}, cause))
		}
	}
	return nil
}

// blameAll notes the records that fail alone, and says whether there are any.
func (l *live) blameAll(ctx context.Context, parts []part) (found bool, err error) {
	at := map[*kgo.Record]job.Partition{}
	var records []*kgo.Record
	for _, p := range parts {
		for _, rec := range p.records {
			if _, known := l.skip[p.partition][rec.Offset]; !known {
				records, at[rec] = append(records, rec), p.partition
			}
		}
	}
	note := func(rec *kgo.Record, why format.Reject) error {
		l.setAside(at[rec], rec.Offset, why)
		found = true
		return nil
	}
	for rec, why := range l.batching.finder.sift(ctx, records) {
		_ = note(rec, why)
	}
	if found { // the batch may pass without them
		return true, nil
	}
	return found, l.batching.finder.within(ctx, records, ofData, note)
}

// setAside notes a record that is left out of every batch from now on, as a dead letter.
func (l *live) setAside(p job.Partition, offset int64, why format.Reject) {
	if l.skip[p] == nil {
		l.skip[p] = map[int64]format.Reject{}
	}
	l.skip[p][offset] = why
}
