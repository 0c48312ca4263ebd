package law

import (
	"context"
	"errors"
	"fmt"
	"math"
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
	HalfRows    int64 // of the version's table, had it every second part only
	Query       time.Duration
	Build       time.Duration // merge of what is staged, and the index
}

// Measure replays the parts, each as a segment, and measures what comes of it. now is the clock.
func Measure(ctx context.Context, d Deps, spec *job.Spec, c *query.Compiled, parts [][]*kgo.Record, now func() time.Time) (m Measured, err error) {
	r, err := NewRunner(ctx, spec, c)
	if err != nil {
		return Measured{}, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	err = d.In(ctx, r, 1, func(b *Bench) error { return b.measure(ctx, parts, now, &m) })
	return m, err
}

func (b *Bench) measure(ctx context.Context, parts [][]*kgo.Record, now func() time.Time, m *Measured) error {
	for half := range 2 { // even parts first: their rows are half of the story
		for i := half; i < len(parts); i += 2 {
			began := now()
			rows, err := b.partial(ctx, parts[i])
			if err != nil {
				return err
			}
			m.Query += now().Sub(began)
			m.Records += int64(len(parts[i]))
			m.StagedRows += int64(len(rows))
			if err := b.stage(ctx, i, rows); err != nil {
				return err
			}
		}
		began := now()
		if err := b.Rebuild(ctx); err != nil {
			return err
		}
		if half == 1 {
			if _, err := b.tx.Raw().Exec(ctx, "REINDEX TABLE "+pg.Ident(tempSchema, b.ref.Table())); err != nil {
				return fmt.Errorf("index: %w", err)
			}
			m.Build = now().Sub(began)
		}
		table := pg.Ident(tempSchema, b.ref.Table())
		err := b.tx.Raw().QueryRow(ctx, fmt.Sprintf("SELECT (SELECT count(*) FROM %s), pg_total_relation_size($1::text::regclass), pg_total_relation_size($2::text::regclass)", table),
			table, pg.Ident(tempSchema, b.ref.Staging())).Scan(&m.Rows, &m.TableBytes, &m.StagedBytes)
		if err != nil {
			return fmt.Errorf("measure: %w", err)
		}
		if half == 0 {
			m.HalfRows = m.Rows
		}
	}
	return nil
}

// Growth is the power of the number of records with which the number of keys grows: 1 when every record brings its own key, 0
// when all keys are known by now (Heaps' law, fitted through half of the parts and all of them).
func (m Measured) Growth() float64 {
	if m.HalfRows <= 0 || m.Rows <= m.HalfRows {
		return 0
	}
	return math.Min(1, math.Log2(float64(m.Rows)/float64(m.HalfRows)))
}
