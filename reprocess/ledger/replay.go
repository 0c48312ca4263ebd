package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// ReplayRate is records a second of one worker over the newest replay of the job that was finished. One of few records
// says more about the beginning of a segment than about records.
func ReplayRate(ctx context.Context, db pg.DB, name job.Name) (*float64, error) {
	var rate *float64
	err := db.QueryRow(ctx, `SELECT sum(records) / nullif(sum(coalesce((timings ->> 'all')::double precision,
				(timings ->> 'query')::double precision + (timings ->> 'land')::double precision, 0)), 0)
		FROM kappactl.segment WHERE job = @job AND state = 'done' AND records > 0
		GROUP BY number HAVING sum(records) >= 20000 ORDER BY number DESC LIMIT 1`, pgx.NamedArgs{"job": string(name)}).Scan(&rate)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // no replay yet
	}
	if err != nil {
		return nil, fmt.Errorf("read the timings of earlier segments: %w", err)
	}
	return rate, nil
}

// Awaited is a condition that a version waits for between two passes, besides the tick: a query that is true once it
// has happened. Empty is nothing but the tick.
type Awaited string

const (
	// SegmentsDone is the end of the last segment, after which the table can be built.
	SegmentsDone Awaited = `SELECT NOT EXISTS (SELECT 1 FROM kappactl.segment WHERE job = @job AND number = @number AND state <> 'done')`
	// PartitionsTaken is the moment when workers hold every partition, so that the verdict means something.
	PartitionsTaken Awaited = `SELECT NOT EXISTS (SELECT 1 FROM kappactl.position
		WHERE job = @job AND number = @number AND (owner IS NULL OR lease < clock_timestamp()))`
)

// Happened reports whether it has happened for a version.
func (a Awaited) Happened(ctx context.Context, db pg.DB, name string, number int) (bool, error) {
	var yes bool
	err := db.QueryRow(ctx, string(a), pgx.NamedArgs{"job": name, "number": number}).Scan(&yes)
	return yes, err
}
