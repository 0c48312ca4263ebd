package mergecheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/query"
)

// Measured is the measured cost of replaying some records into temporary tables.
type Measured struct {
	Records     int64
	StagedRows  int64
	StagedBytes int64
	Rows        int64 // of the version's table
	TableBytes  int64 // including its index
	HalfRows    int64 // rows from half of the parts, chosen at random
	QuarterRows int64 // rows from a quarter of the parts
	Query       time.Duration
	Build       time.Duration // merging the staged rows and building the index
	Rejected    int64         // number of records that would become dead letters
	Reject      string        // why the first of them would
}

// maxMeasureRuns is how many times at most the query runs to isolate the records over which it fails.
const maxMeasureRuns = 400

// measureParts is the largest number of parts that are staged; each takes a statement.
const measureParts = 64

// Measure replays each part as a segment and measures the result. Records over which the query fails are left out and
// counted. now is the clock. The error is a *ServeError if PostgreSQL refuses SQL of serve.
func Measure(ctx context.Context, d Deps, spec *job.Spec, c *query.Compiled, parts [][]*kgo.Record,
	now func() time.Time,
) (m Measured, err error) {
	r, err := NewRunner(ctx, spec, c)
	if err != nil {
		return Measured{}, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	err = d.In(ctx, r, func(b *Bench) error {
		if _, err := b.Types(ctx); err != nil {
			return err
		}
		return b.measure(ctx, parts, now, &m)
	})
	m.Rejected, m.Reject = m.Rejected+r.rejected, cmp.Or(m.Reject, r.example)
	return m, err
}

func (b *Bench) measure(ctx context.Context, parts [][]*kgo.Record, now func() time.Time, m *Measured) error {
	parts = shuffled(parts)
	tries, done := maxMeasureRuns, 0
	var good [][]*kgo.Record
	for _, step := range []struct {
		upTo int
		rows *int64
	}{{(len(parts) + 3) / 4, &m.QuarterRows}, {(len(parts) + 1) / 2, &m.HalfRows}, {len(parts), &m.Rows}} {
		for ; done < step.upTo; done++ {
			passed, err := b.stagePart(ctx, done, parts[done], &tries, m)
			if err != nil {
				return err
			}
			good = append(good, passed)
		}
		began := now()
		if err := b.Rebuild(ctx); err != nil {
			return err
		}
		if done == len(parts) {
			if _, err := b.tx.Raw().Exec(ctx, "REINDEX TABLE "+pg.Ident(tempSchema, b.version.Table())); err != nil {
				return fmt.Errorf("index: %w", err)
			}
			m.Build = now().Sub(began)
		}
		if err := b.sizes(ctx, step.rows, m); err != nil {
			return err
		}
	}
	began, rejected := now(), b.run.rejected
	_, err := b.partial(ctx, slices.Concat(good...)) // in one statement: starting a statement takes time
	m.Query, b.run.rejected = now().Sub(began), rejected
	return err
}

// shuffled shuffles the parts, so that each half represents all places and partitions equally well, and joins them into
// at most measureParts parts.
func shuffled(parts [][]*kgo.Record) [][]*kgo.Record {
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // it is to be the same every time
	out := make([][]*kgo.Record, min(len(parts), measureParts))
	for i, from := range random.Perm(len(parts)) {
		out[i%len(out)] = append(out[i%len(out)], parts[from]...)
	}
	return out
}

// stagePart stages the rows of one part and returns the records of the part that the query can process.
func (b *Bench) stagePart(ctx context.Context, i int, part []*kgo.Record, tries *int, m *Measured) ([]*kgo.Record,
	error,
) {
	rows, err := b.partial(ctx, part)
	var failed *query.ExecError
	if errors.As(err, &failed) {
		part, rows, err = b.passing(ctx, part, tries, m)
	}
	if err != nil {
		return nil, err
	}
	m.Records += int64(len(part))
	m.StagedRows += int64(len(rows))
	return part, b.stage(ctx, i, rows)
}

// sizes reads the number of rows of the table, and the sizes of the table and the staging table.
func (b *Bench) sizes(ctx context.Context, rows *int64, m *Measured) error {
	table := pg.Ident(tempSchema, b.version.Table())
	err := b.tx.Raw().QueryRow(ctx,
		fmt.Sprintf("SELECT (SELECT count(*) FROM %s), pg_total_relation_size($1::text::regclass), "+
			"pg_total_relation_size($2::text::regclass)", table),
		table, pg.Ident(tempSchema, b.version.Staging())).Scan(rows, &m.TableBytes, &m.StagedBytes)
	if err != nil {
		return fmt.Errorf("measure: %w", err)
	}
	return nil
}

// passing returns the records of a part that the query can process, and the rows that PARTIAL gives for them.
func (b *Bench) passing(ctx context.Context, part []*kgo.Record, tries *int, m *Measured) ([]*kgo.Record, []Row,
	error,
) {
	before, example := b.run.rejected, b.run.example
	good, failed, why, err := b.run.survivors(ctx, part, tries)
	if err != nil {
		return nil, nil, err
	}
	m.Rejected, m.Reject = m.Rejected+failed, cmp.Or(m.Reject, why)
	rows, err := b.partial(ctx, good)
	b.run.rejected, b.run.example = before, example // the first attempt counted them
	return good, rows, err
}
