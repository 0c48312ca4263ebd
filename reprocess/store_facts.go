package reprocess

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
)

// Facts are what is known of a version beside its status.
type Facts struct {
	Ready job.ReadySettings
	// Starts are the first offsets that the version covers, by topic/partition.
	Starts map[string]int64
	// Segments of the replay: all of them, and those that are done.
	Segments, Done int
	// Deadline is when retention is expected to begin deleting what is not replayed yet; nil when nothing is.
	Deadline *time.Time
	// Checks are those of the job file, with what each said last.
	Checks []CheckStatus
}

// Newest is the newest deployment of a job; nil when it has none.
func (s *Store) Newest(ctx context.Context, name job.Name) (*Deployment, error) {
	var id int64
	err := s.pool.QueryRow(ctx, `SELECT coalesce(max(id), 0) FROM kappactl.deployment WHERE job = @job`,
		pgx.NamedArgs{"job": string(name)}).Scan(&id)
	if err != nil {
		return nil, fmt.Errorf("read the newest deployment of %s: %w", name, err)
	}
	if id == 0 {
		return nil, nil
	}
	d, err := s.Deployment(ctx, id)
	return &d, err
}

// factRow is a version with what its page shows beside its status.
type factRow struct {
	Number   int
	Ready    string
	Starts   string
	Segments int
	Done     int
	Deadline *time.Time
}

// Facts are, for each version (v1, v2, …) that has not ended and the newest that has: its limits, its checks with what each said last,
// the offsets it covers and how far its segments are.
func (s *Store) Facts(ctx context.Context, name job.Name) (map[string]Facts, error) {
	rows, err := s.pool.Query(ctx, `SELECT v.number, coalesce(v.spec -> 'ready', '{}')::text AS ready,
			coalesce((SELECT jsonb_object_agg(p.topic || '/' || p.partition, p.covers_from) FROM kappactl.position p
				WHERE p.job = v.job AND p.number = v.number), '{}')::text AS starts,
			coalesce(g.segments, 0)::integer AS segments, coalesce(g.done, 0)::integer AS done, g.deadline
		FROM kappactl.version v
		LEFT JOIN LATERAL (SELECT count(*) AS segments, count(*) FILTER (WHERE state = 'done') AS done,
				min(deadline) FILTER (WHERE state <> 'done') AS deadline
			FROM kappactl.segment g WHERE g.job = v.job AND g.number = v.number) g ON true
		WHERE v.job = @job AND (v.ended_at IS NULL OR v.number = (SELECT max(number) FROM kappactl.version WHERE job = @job))`,
		pgx.NamedArgs{"job": string(name)})
	if err != nil {
		return nil, fmt.Errorf("read facts of %s: %w", name, err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[factRow])
	if err != nil {
		return nil, fmt.Errorf("read facts of %s: %w", name, err)
	}
	checks, err := readCheckStatuses(ctx, s.pool, string(name))
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
