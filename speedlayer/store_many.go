package speedlayer

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// positionHash changes with every change of a position but those of claims and leases. It leaves room for the sum of
// 8,000 partitions.
const positionHash = `hashtextextended(ROW(p.topic_id, p.topic, p.partition, p.next, p.covers_from, p.frozen_end, p.leader_epoch, p.record_time,
       p.records, p.dead_letters, p.owner, p.fault, p.fault_detail, p.fault_from, p.fault_to)::text, 0) >> 14`

// sqlChangedPositions lists the versions whose positions are not those that are known. Of a version of which segments
// are open nothing is known: its positions are made of theirs.
const sqlChangedPositions = `
WITH asked AS (
     SELECT * FROM unnest(@jobs::text[], @numbers::integer[], @digests::bigint[]) AS a (job, number, digest)),
     found AS (
     SELECT p.job, p.number, CASE WHEN bool_and(p.next >= p.frozen_end) THEN sum(` + positionHash + `)::bigint END AS digest
       FROM asked a JOIN kappactl.position p ON p.job = a.job AND p.number = a.number
      GROUP BY p.job, p.number)
SELECT a.job, a.number
  FROM asked a LEFT JOIN found f ON f.job = a.job AND f.number = a.number
 WHERE f.digest IS NULL OR f.digest IS DISTINCT FROM a.digest`

const sqlPositionsOf = sqlPositionRows + `
  JOIN unnest(@jobs::text[], @numbers::integer[]) AS a (job, number) ON p.job = a.job AND p.number = a.number
 ORDER BY p.topic, p.partition, p.topic_id`

// PositionsOf is Positions of many versions: one statement compares them with those of known, and one more reads those
// that changed. The answer has these only; what is not in it is as it was.
func (Store) PositionsOf(ctx context.Context, db pg.DB, known map[job.Ref]job.Positions) (map[job.Ref]job.Positions,
	error,
) {
	var jobs []string
	var numbers []int32
	var digests []*int64
	for ref, k := range known {
		jobs, numbers = append(jobs, string(ref.Job)), append(numbers, int32(ref.Number)) //nolint:gosec // small
		var digest *int64
		if k.Known {
			digest = &k.Digest
		}
		digests = append(digests, digest)
	}
	type changedRow struct {
		Job    string
		Number int
	}
	changed, err := pg.Structs[changedRow](ctx, db, sqlChangedPositions,
		pgx.NamedArgs{"jobs": jobs, "numbers": numbers, "digests": digests})
	if err != nil || len(changed) == 0 {
		return nil, wrapMany(err, len(known))
	}
	out := make(map[job.Ref]job.Positions, len(changed))
	jobs, numbers = jobs[:0], numbers[:0]
	for _, c := range changed {
		out[job.Ref{Job: job.Name(c.Job), Number: job.Number(c.Number)}] = job.Positions{Known: true}
		jobs, numbers = append(jobs, c.Job), append(numbers, int32(c.Number)) //nolint:gosec // small
	}
	rows, err := pg.Structs[positionRow](ctx, db, sqlPositionsOf, pgx.NamedArgs{"jobs": jobs, "numbers": numbers})
	if err != nil {
		return nil, wrapMany(err, len(known))
	}
	for _, r := range rows {
		p, err := r.position()
		if err != nil {
			return nil, wrapMany(err, len(known))
		}
		ref := job.Ref{Job: job.Name(r.Job), Number: job.Number(r.Number)}
		all := out[ref]
		all.Digest += r.Hash
		all.All = append(all.All, p)
		out[ref] = all
	}
	return out, nil
}

func wrapMany(err error, versions int) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("read positions of %d versions: %w", versions, err)
}
