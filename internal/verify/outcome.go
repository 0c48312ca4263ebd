package verify

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/kappactl/kappactl/internal/job"
)

// boundary returns the time key of the oldest record in each truncated span, and of these the latest. Rows up to it may
// lack records. It skips records that produce no row, in batches of doubling size.
func (r *run) boundary(ctx context.Context, log *logReader, truncated []*span) (after int64, cut bool, err error) {
	for _, s := range truncated {
		probe := *s // a copy with its own position, so that the real read starts at the span's start
		probe.rejected = nil
		log.spans, log.size = []*span{&probe}, 1
		found := false
		for !found && log.Next() {
			rows, err := r.texts(ctx, fmt.Sprintf("SELECT CAST(max(%s) AS VARCHAR) FROM (%s)", r.timeOf(r.timeKey()),
				r.expected()), newOne(log.RecordBatch()))
			if err != nil {
				return 0, false, fmt.Errorf("find where the log starts: %w", err)
			}
			if len(rows) == 1 && rows[0][0] != nil {
				at, err := strconv.ParseInt(*rows[0][0], 10, 64)
				if err != nil {
					return 0, false, fmt.Errorf("find where the log starts: %w", err)
				}
				if !cut || at > after {
					after, cut = at, true
				}
				found = true
			}
			log.size = min(2*log.size, batchRecords)
		}
		switch {
		case log.err != nil:
			return 0, false, log.err
		case !found: // no remaining record shows up to which time records are gone
			return 0, false, nothingLeft()
		}
		log.pending = nil
		log.drop()
		if log.decoder.Len() > 0 {
			log.decoder.Take().Release()
		}
	}
	log.size = batchRecords
	return after, cut, nil
}

func nothingLeft() error {
	return &job.Refusal{
		Code: job.ExitGap, Cause: "the log no longer holds a complete bucket of the time key",
		Next: "run verify again when newer buckets are complete",
	}
}

// cutAt keeps only the rows after the boundary in both tables.
func (r *run) cutAt(ctx context.Context, after int64) error {
	i := r.timeKey()
	keep := fmt.Sprintf("coalesce(%s > %d, false)", r.timeOf(i), after)
	skipped, err := r.number(ctx, "SELECT CAST(count(*) AS VARCHAR) FROM served WHERE NOT "+keep)
	if err != nil {
		return err
	}
	for _, table := range []string{"served", "expected"} {
		if err := r.exec(ctx, "DELETE FROM "+table+" WHERE NOT "+keep, nil); err != nil {
			return err
		}
	}
	left, err := r.number(ctx, "SELECT CAST((SELECT count(*) FROM served) + (SELECT count(*) FROM expected) AS VARCHAR)")
	if err != nil {
		return err
	}
	if left == 0 {
		return nothingLeft()
	}
	shown, err := r.texts(ctx, fmt.Sprintf("SELECT %s", r.columns[i].show(fmt.Sprintf("'%d'", after))), nil)
	if err != nil {
		return err
	}
	r.report.Skipped, r.report.ComparedAfter = skipped, *shown[0][0]
	return nil
}

// compare fills in the report.
func (r *run) compare(ctx context.Context) (err error) {
	for _, sql := range r.differing() {
		if err := r.exec(ctx, sql, nil); err != nil {
			return fmt.Errorf("compare: %w", err)
		}
	}
	p := &r.report
	if p.Rows, err = r.number(ctx, "SELECT CAST(count(*) AS VARCHAR) FROM served"); err != nil {
		return err
	}
	if p.Differences, err = r.number(ctx, "SELECT CAST(count(*) AS VARCHAR) FROM differing"); err != nil {
		return err
	}
	rows, err := r.texts(ctx, r.examples(), nil)
	if err != nil {
		return fmt.Errorf("compare: %w", err)
	}
	for _, row := range rows {
		p.Examples = append(p.Examples, r.example(row))
	}
	for _, s := range r.spans {
		slices.Sort(s.rejected)
		p.DeadLetters += int64(len(s.rejected))
		p.Partitions = append(p.Partitions, Partition{Topic: s.Topic, Partition: s.ID, From: s.start, To: s.To, Gaps: s.gaps})
	}
	letters := deadLetterDifferences(r.spans)
	p.Differences += int64(len(letters))
	p.Examples = append(p.Examples, letters[:min(len(letters), maxExamples-len(p.Examples))]...)
	p.Equal = p.Differences == 0
	return nil
}

// one reads a single batch that it does not own.
type one struct {
	batch arrow.RecordBatch
	given bool
}

func newOne(b arrow.RecordBatch) *one { return &one{batch: b} }

// Retain and Release do nothing: the batch has another owner.
func (*one) Retain()  {}
func (*one) Release() {}

func (o *one) Schema() *arrow.Schema          { return o.batch.Schema() }
func (o *one) RecordBatch() arrow.RecordBatch { return o.batch }

// Record is the deprecated name of RecordBatch, which the interface requires.
func (o *one) Record() arrow.RecordBatch { return o.batch }
func (*one) Err() error                  { return nil }

// Next returns the batch once.
func (o *one) Next() bool {
	first := !o.given
	o.given = true
	return first
}
