package status

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
)

// Facts are details of a version in addition to its status.
type Facts struct {
	Ready job.ReadySettings
	// Starts are the first offsets that the version covers, by topic/partition.
	Starts map[string]int64
	// Segments is the number of the replay's segments, Done that of the finished ones.
	Segments, Done int
	// Deadline is when retention is expected to start deleting unread records; nil if it does not.
	Deadline *time.Time
	// Checks are those of the job file, with their latest answers.
	Checks []Check
}

// factRow is a row of a version's details.
type factRow struct {
	Number   int
	Ready    string
	Starts   string
	Segments int
	Done     int
	Deadline *time.Time
}

// Facts returns limits, checks with their latest answers, covered offsets and the progress of segments by version name
// (v1, v2, …), for each version that has not ended and the newest that has.
func (s *Store) Facts(ctx context.Context, name job.Name) (map[string]Facts, error) {
	rows, err := s.pool.Query(ctx, `SELECT v.number, coalesce(v.spec -> 'ready', '{}')::text AS ready,
			coalesce((SELECT jsonb_object_agg(p.topic || '/' || p.partition, p.covers_from) FROM kappactl.position p
				WHERE p.job = v.job AND p.number = v.number), '{}')::text AS starts,
			coalesce(g.segments, 0)::integer AS segments, coalesce(g.done, 0)::integer AS done, g.deadline
		FROM kappactl.version v
		LEFT JOIN LATERAL (SELECT count(*) AS segments, count(*) FILTER (WHERE state = 'done') AS done,
				min(deadline) FILTER (WHERE state <> 'done') AS deadline
			FROM kappactl.segment g WHERE g.job = v.job AND g.number = v.number) g ON true
		WHERE v.job = @job AND (v.ended_at IS NULL OR v.number = (SELECT max(number) FROM kappactl.version
		WHERE job = @job))`,
		pgx.NamedArgs{"job": string(name)})
	if err != nil {
		return nil, fmt.Errorf("read facts of %s: %w", name, err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[factRow])
	if err != nil {
		return nil, fmt.Errorf("read facts of %s: %w", name, err)
	}
	checks, err := readChecks(ctx, s.pool, string(name))
	if err != nil {
		return nil, fmt.Errorf("read checks of %s: %w", name, err)
	}
	out := make(map[string]Facts, len(found))
	for _, r := range found {
		f, err := r.facts()
		if err == nil {
			f.Checks, err = checksOf(checks, string(name), r.Number)
		}
		if err != nil {
			return nil, fmt.Errorf("read facts of %s/v%d: %w", name, r.Number, err)
		}
		out[job.Number(r.Number).String()] = f
	}
	return out, nil
}

func (r factRow) facts() (Facts, error) {
	f := Facts{Segments: r.Segments, Done: r.Done, Deadline: r.Deadline}
	for text, into := range map[string]any{r.Ready: &f.Ready, r.Starts: &f.Starts} {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			return f, err
		}
	}
	return f, nil
}
