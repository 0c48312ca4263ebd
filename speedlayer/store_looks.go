package speedlayer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// heldHash changes when a position's row is no longer what its owner knows of it. It leaves room for the sum of 8,000
// partitions.
const heldHash = `hashtextextended(ROW(topic_id, partition, claim, fault)::text, 0) >> 14`

const (
	sqlLooks = `
WITH asked AS (SELECT * FROM unnest(@jobs::text[], @numbers::integer[]) AS a (job, number)),
     shares AS (
     SELECT r.job, r.number, count(*) AS total, count(*) FILTER (WHERE r.owner IS NULL OR r.lease < clock_timestamp()) AS free,
            coalesce(sum(` + heldHash + `) FILTER (WHERE r.owner = @owner), 0)::bigint AS digest,
            min(extract(epoch FROM r.lease - clock_timestamp())) FILTER (WHERE r.owner = @owner)::double precision AS left_over
       FROM asked JOIN kappactl.position r USING (job, number) GROUP BY r.job, r.number)
SELECT v.job, v.number, v.phase, v.paused_at IS NOT NULL AS paused, coalesce((v.spec #> '{live,every}')::bigint, 0) AS every,
       v.spec ? 'archive' AS archive,
       coalesce(s.total, 0) AS total, coalesce(s.free, 0) AS free, coalesce(s.digest, 0) AS digest, s.left_over
  FROM asked JOIN kappactl.version v USING (job, number) LEFT JOIN shares s USING (job, number)`
	// sqlProlongAll passes over rows that somebody has locked: a commit prolongs them itself, and after anything else they
	// are due still at the next look.
	sqlProlongAll = `
UPDATE kappactl.position SET lease = clock_timestamp() + @lease::interval
 WHERE ctid = ANY (ARRAY(
       SELECT p.ctid FROM unnest(@jobs::text[], @numbers::integer[]) AS a (job, number)
         JOIN kappactl.position p ON p.job = a.job AND p.number = a.number
        WHERE p.owner = @owner AND p.lease < clock_timestamp() + @fresh::interval FOR NO KEY UPDATE OF p SKIP LOCKED))
   AND owner = @owner`
)

// fresh is how much of a lease must be left for it not to be prolonged: two thirds, less a tick.
func (e *Engine) fresh() time.Duration {
	return e.config.Lease - max(e.tick()/2, e.config.Lease/3-e.tick())
}

func (e *Engine) lookArgs(refs []job.Ref) pgx.NamedArgs {
	jobs, numbers := make([]string, len(refs)), make([]int32, len(refs))
	for i, ref := range refs {
		jobs[i], numbers[i] = string(ref.Job), int32(ref.Number) //nolint:gosec // small
	}
	return pgx.NamedArgs{"jobs": jobs, "numbers": numbers, "owner": e.Agent}
}

// lookRow is the row that sqlLooks returns for a version.
type lookRow struct {
	Job      string
	Number   int
	Phase    string
	Paused   bool
	Every    time.Duration
	Archive  bool
	Total    int
	Free     int
	Digest   int64
	LeftOver *float64 // seconds of the lease of ours that ends first; nil: we have none
}

// expires reports whether a lease of ours ends within d.
func (r lookRow) expires(d time.Duration) bool { return r.LeftOver != nil && *r.LeftOver < d.Seconds() }

// readAll reads the state of versions, in the order of refs. One that is gone is retired.
func (e *Engine) readAll(ctx context.Context, refs []job.Ref) ([]seen, error) {
	agents := e.living(ctx)
	rows, err := pg.Structs[lookRow](ctx, e.Pool, sqlLooks, e.lookArgs(refs))
	if err != nil {
		return nil, fmt.Errorf("look at %d versions: %w", len(refs), err)
	}
	fresh := e.fresh()
	if slices.ContainsFunc(rows, func(r lookRow) bool { return r.expires(fresh) }) {
		fresh += e.config.Lease / 6 // those that are due soon go with it, and are due together from then on
	}
	found := make(map[job.Ref]seen, len(rows))
	for _, r := range rows {
		found[job.Ref{Job: job.Name(r.Job), Number: job.Number(r.Number)}] = seen{
			standing: standing{Phase: r.Phase, Paused: r.Paused, Every: r.Every, Archive: r.Archive}, agents: agents,
			total: r.Total, free: r.Free, digest: r.Digest, due: r.expires(fresh),
		}
	}
	out := make([]seen, len(refs))
	for i, ref := range refs {
		s, ok := found[ref]
		if !ok {
			s.Phase = string(job.Retired)
		}
		out[i] = s
	}
	return out, nil
}

// prolongAll prolongs the leases of versions that are due.
func (e *Engine) prolongAll(ctx context.Context, refs []job.Ref) error {
	args := e.lookArgs(refs)
	args["lease"], args["fresh"] = pg.Interval(e.config.Lease), pg.Interval(e.fresh()+e.config.Lease/6)
	if _, err := e.Pool.Exec(ctx, sqlProlongAll, args); err != nil {
		return fmt.Errorf("prolong the leases of %d versions: %w", len(refs), err)
	}
	return nil
}
