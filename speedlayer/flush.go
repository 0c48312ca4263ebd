package speedlayer

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/faultpoint"
	"github.com/kappactl/kappactl/internal/format"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/query"
)

// flush commits what is pending. A batch that does not fit the rows is cut to fit and computed again from the records
// that are still held; nil means that everything that may be committed is.
func (l *live) flush(ctx context.Context) error {
	for ctx.Err() == nil {
		if l.doubt {
			if err := l.settleDoubt(ctx); err != nil {
				return err
			}
		}
		if err := l.refreshHolds(ctx); err != nil {
			return err
		}
		parts := l.nextBatch()
		if len(parts) == 0 {
			return nil
		}
		if err := l.settle(ctx, l.try(ctx, parts), parts); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// try computes and commits one batch.
func (l *live) try(ctx context.Context, parts []part) error {
	b, err := l.compute(ctx, parts)
	if err != nil {
		return err
	}
	began := l.Now()
	if err := l.commit(ctx, b); err != nil {
		return classify(err)
	}
	l.hit(faultpoint.LiveAfterCommit)
	n := countRecords(parts)
	l.Metrics.committed(l.ref, n, l.Now().Sub(began))
	l.Metrics.DeadLetters.Add(int64(len(b.letters)))
	for _, p := range parts {
		for _, rec := range p.records {
			l.Metrics.Bytes.Add(int64(len(rec.Key) + len(rec.Value)))
		}
	}
	return nil
}

// settle decides what follows from how a batch ended. nil: look again at what is pending.
func (l *live) settle(ctx context.Context, err error, parts []part) error {
	var stale *staleError
	var unknown *pg.CommitError
	var data *dataError
	var epochs *epochsError
	var resource *query.ResourceError
	switch {
	case err == nil:
		l.committed(parts)
		return nil
	case errors.As(err, &unknown):
		l.doubt = true
		return err
	case errors.As(err, &stale):
		l.Metrics.CommitRetries.Add(1)
		l.sortOut(parts, stale.rows)
		return nil
	case errors.Is(err, errCut):
		return nil
	case tableChanged(err):
		haveFault(parts, job.FaultTable, err)
		return nil
	case errors.As(err, &epochs):
		haveFault(parts, job.FaultEpochs, err)
		return nil
	case errors.As(err, &data):
		err = l.search(ctx, parts, data)
	}
	var merge *mergeError
	if errors.As(err, &resource) || pg.TimedOut(err) || errors.As(err, &merge) && pg.Unreachable(err) { // of the batch, or of the search in it
		return l.tooMuch(parts, err)
	}
	if errors.As(err, &merge) && !pg.Retryable(err) && !pg.Unreachable(err) {
		l.refused(ctx, parts, err)
		return nil
	}
	return err
}

// committed moves past the batch.
func (l *live) committed(parts []part) {
	next := map[job.Partition]int64{}
	for _, p := range parts {
		p.rewind(p.to)
		next[p.partition] = p.to
		for offset := range l.skip[p.partition] {
			if offset < p.to {
				delete(l.skip[p.partition], offset)
			}
		}
	}
	for p := range next {
		l.troubles.works(committingTo(p))
	}
	l.advice.give(next)
	l.tries = 0
	l.widen(parts)
}

// sortOut makes the partitions of a stale batch agree with their rows.
func (l *live) sortOut(parts []part, rows map[job.Partition]*lockedRow) {
	for _, p := range parts {
		row := rows[p.partition]
		switch judge(p, row) {
		case lost:
			l.lose(p.owned)
		case moved:
			p.rewind(row.Next)
		case faulted:
			l.halt(p.owned, job.FaultKind(row.Fault))
		case tooFar, fits: // one that fits may be about to come to its hold
			p.stopAt(row.Hold)
		}
	}
}

// refreshHolds reads again the holds that stopped us: they are released or run out.
func (l *live) refreshHolds(ctx context.Context) error {
	held := claims{}
	for p, o := range l.owned {
		if o.hold != nil {
			held[p] = o.claim
		}
	}
	if len(held) == 0 {
		return nil
	}
	rows, err := l.readRows(ctx, l.Pool, sqlHolds, held.args(l.ref))
	if err != nil {
		return fmt.Errorf("read holds of %s: %w", l.ref, err)
	}
	for p := range held {
		var hold *int64
		if row := rows[p]; row != nil {
			hold = row.Hold
		}
		l.owned[p].stopAt(hold)
	}
	return nil
}

// errCut is a batch that was cut before a record that stops its partition.
var errCut = errors.New("the batch was cut")

// compute runs PARTIAL over the batch.
func (l *live) compute(ctx context.Context, parts []part) (batch, error) {
	if err := l.openBatching(ctx); err != nil {
		return batch{}, err
	}
	index := map[job.Partition]int{}
	var records []*kgo.Record
	for i, p := range parts {
		index[job.Partition{Topic: p.partition.Topic, ID: p.partition.ID}] = i
		records = append(records, p.records...)
	}
	b := batch{parts: parts, rows: l.newTable()}
	cut := false
	reject := func(rec *kgo.Record, r *format.Reject) {
		p := &parts[index[job.Partition{Topic: rec.Topic, ID: rec.Partition}]]
		if l.spec.Source.OnError.Fail {
			cut = p.cutAt(rec.Offset, recordFault(p.partition, rec, r)) || cut
			return
		}
		p.letters++
		b.letters = append(b.letters, newLetter(p.partition, rec, r))
	}
	records = l.withoutSkipped(parts, records, reject)
	in := &feed{schema: l.batching.decoder.Schema(), pull: batches(l.batching.decoder, records, reject)}
	defer in.Release()
	err := l.query(ctx, l.batching.session, l.land, in,
		func(rows arrow.RecordBatch) error { return b.rows.add(l.layout, rows) })
	if err == nil {
		err = in.drain()
	}
	if cut {
		return b, errCut
	}
	return b, classify(err)
}

// withoutSkipped leaves out the records that the query could not take and that are dead letters.
func (l *live) withoutSkipped(parts []part, records []*kgo.Record,
	reject func(*kgo.Record, *format.Reject),
) []*kgo.Record {
	skipping := false
	for _, p := range parts {
		skipping = skipping || len(l.skip[p.partition]) > 0
	}
	if !skipping {
		return records
	}
	records = records[:0:0]
	for _, p := range parts {
		for _, rec := range p.records {
			if r, known := l.skip[p.partition][rec.Offset]; known {
				reject(rec, &r)
				continue
			}
			records = append(records, rec)
		}
	}
	return records
}
