package archive

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/pg"
)

// Turned are partitions of an archive that have become late or have stopped, of which jobs are to be told.
type Turned struct {
	Topic      string
	State      State // StateLate or StateFault
	Partitions []int32
	Deadline   *time.Time // the first of those that are late
	Detail     string     // of a fault of the first partition
	Jobs       []string   // that want the archive
}

// Turned notes which partitions have become late, have stopped, or are neither any more, and returns those to tell of.
// The transaction that tells of them is the caller's. A partition whose row another transaction has locked is left to
// the next look.
func (Store) Turned(ctx context.Context, tx *pg.Tx) ([]Turned, error) {
	out, err := pg.Collect(ctx, tx, pgx.RowToStructByPos[Turned], `
		WITH now AS MATERIALIZED (
			SELECT p.id, CASE WHEN p.fault <> '' THEN 'fault' WHEN `+lateSQL+` THEN 'late' ELSE '' END AS state, `+deadlineSQL+` AS deadline
			FROM kappactl.archive_position p JOIN kappactl.archive a USING (topic_id) WHERE a.wanted_by <> '{}'),
		changed AS MATERIALIZED (
			SELECT p.id FROM kappactl.archive_position p JOIN now n USING (id) WHERE p.told <> n.state FOR NO KEY UPDATE OF p SKIP LOCKED),
		turned AS (
			UPDATE kappactl.archive_position p SET told = n.state FROM now n WHERE n.id = p.id AND p.id IN (SELECT c.id FROM changed c)
			RETURNING p.topic_id, p.partition, n.state, n.deadline, p.fault_detail)
		SELECT a.topic, t.state, array_agg(t.partition ORDER BY t.partition), min(t.deadline), (array_agg(t.fault_detail ORDER BY t.partition))[1],
			a.wanted_by
		FROM turned t JOIN kappactl.archive a USING (topic_id) WHERE t.state <> '' GROUP BY a.topic_id, t.state ORDER BY a.topic, a.created_at, t.state`)
	if err != nil {
		return nil, fmt.Errorf("look for archives that are late or have stopped: %w", err)
	}
	return out, nil
}
