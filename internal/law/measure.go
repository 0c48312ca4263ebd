package law

import (
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

// Measured is what a replay of some records costs, as tried out in temporary tables.
type Measured struct {
	Records     int64
	StagedRows  int64
	StagedBytes int64
	Rows        int64 // of the version's table
	TableBytes  int64 // with its index
	HalfRows    int64 // the same with half of the parts, taken at random
	QuarterRows int64 // and with a quarter
	Query       time.Duration
	Build       time.Duration // merge of what is staged, and the index
	Rejected    int64         // records that become dead letters
	Reject      string        // why the first does
}

// measureTries is how often the query is run again at most to find the records over which it fails.
const measureTries = 400

// measureParts is in how many parts records are taken at most: each is a statement.
const measureParts = 64

// Measure replays the parts, each as a segment, and measures what comes of it. Records over which the query fails are left out and
// counted. now is the clock. SQL below serve that PostgreSQL refuses is a *ServeError.
func Measure(ctx context.Context, d Deps, spec *job.Spec, c *query.Compiled, parts [][]*kgo.Record, now func() time.Time) (m Measured, err error) {
	r, err := NewRunner(ctx, spec, c)
	if err != nil {
		return Measured{}, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	err = d.In(ctx, r, 1, func(b *Bench) error {
		if _, err := b.Types(ctx); err != nil {
			return err
		}
		return b.measure(ctx, parts, now, &m)
	})
	m.Rejected, m.Reject = m.Rejected+r.rejected, or(m.Reject, r.example)
	return m, err
}

func (b *Bench) measure(ctx context.Context, parts [][]*kgo.Record, now func() time.Time, m *Measured) error {
	parts = dealt(parts)
	tries, done := measureTries, 0
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
			if _, err := b.tx.Raw().Exec(ctx, "REINDEX TABLE "+pg.Ident(tempSchema, b.ref.Table())); err != nil {
				return fmt.Errorf("index: %w", err)
			}
			m.Build = now().Sub(began)
		}
		if err := b.sizes(ctx, step.rows, m); err != nil {
			return err
		}
	}
	began, rejected := now(), b.run.rejected
	_, err := b.partial(ctx, slices.Concat(good...)) // at once: each statement takes a moment to begin
	m.Query, b.run.rejected = now().Sub(began), rejected
	return err
}

// dealt puts parts in a random order, so that the first half of them says as much of all places and partitions as the second, and joins
// them to measureParts at most.
func dealt(parts [][]*kgo.Record) [][]*kgo.Record {
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // it is to be the same every time
	out := make([][]*kgo.Record, min(len(parts), measureParts))
	for i, from := range random.Perm(len(parts)) {
		out[i%len(out)] = append(out[i%len(out)], parts[from]...)
	}
	return out
}

// stagePart stages the rows of one part and returns its records over which the query does not fail.
func (b *Bench) stagePart(ctx context.Context, i int, part []*kgo.Record, tries *int, m *Measured) ([]*kgo.Record, error) {
	rows, err := b.partial(ctx, part)
	var failed *query.ExecError
	if errors.As(err, &failed) {
		part, rows, err = b.without(ctx, part, tries, m)
	}
	if err != nil {
		return nil, err
	}
	m.Records += int64(len(part))
	m.StagedRows += int64(len(rows))
	return part, b.stage(ctx, i, rows)
}

// sizes reads how many rows the table has, and how large it and what is staged are.
func (b *Bench) sizes(ctx context.Context, rows *int64, m *Measured) error {
	table := pg.Ident(tempSchema, b.ref.Table())
	err := b.tx.Raw().QueryRow(ctx, fmt.Sprintf("SELECT (SELECT count(*) FROM %s), pg_total_relation_size($1::text::regclass), pg_total_relation_size($2::text::regclass)", table),
		table, pg.Ident(tempSchema, b.ref.Staging())).Scan(rows, &m.TableBytes, &m.StagedBytes)
	if err != nil {
		return fmt.Errorf("measure: %w", err)
	}
	return nil
}

// without finds the records of a part over which the query does not fail, and runs PARTIAL over them.
func (b *Bench) without(ctx context.Context, part []*kgo.Record, tries *int, m *Measured) ([]*kgo.Record, []Row, error) {
	before, example := b.run.rejected, b.run.example
	good, failed, why, err := b.run.survivors(ctx, part, tries)
	if err != nil {
		return nil, nil, err
	}
	m.Rejected, m.Reject = m.Rejected+failed, or(m.Reject, why)
	rows, err := b.partial(ctx, good)
	b.run.rejected, b.run.example = before, example // were counted at the first attempt
	return good, rows, err
}
