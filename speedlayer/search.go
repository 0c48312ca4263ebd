package speedlayer

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/format"
	"github.com/kappactl/kappactl/internal/job"
)

// search looks for the records of a failed batch that fail alone: they are dead letters of the same batch, which is then
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
		l.limit = max(n/2, 1)
		return nil
	}
	for _, p := range parts {
		if len(p.records) > 0 {
			offset := p.records[0].Offset
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
	probe := func(records []*kgo.Record) error { return l.probe(ctx, l.session, l.decoder, records) }
	err = blame(records, probe, func(rec *kgo.Record, err error) error {
		p := at[rec]
		if l.skip[p] == nil {
			l.skip[p] = map[int64]format.Reject{}
		}
		l.skip[p][rec.Offset], found = blamed(err), true
		return nil
	})
	return found, err
}
