package archive

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Wanted is an archive that jobs ask for.
type Wanted struct {
	Topic     string
	TopicID   job.TopicID
	Cluster   string
	Location  string
	RollEvery time.Duration
	RollSize  int64
	Jobs      []string // sorted
	// DeleteRetention is how long a compacted topic keeps tombstones; nil: it is not compacted, or that is not known.
	DeleteRetention *time.Duration
}

// Want makes the archive of a topic as it is wanted: it is created at its first use, and a change of location holds for
// new files. Without jobs it stops and its files stay.
func (Store) Want(ctx context.Context, db pg.DB, w Wanted) error {
	var deletes *string
	if w.DeleteRetention != nil {
		deletes = new(pg.Interval(*w.DeleteRetention))
	}
	_, err := db.Exec(ctx, `INSERT INTO kappactl.archive AS a (topic_id, topic, cluster_id, location, roll_every, roll_size, wanted_by, delete_retention)
		VALUES (@topic_id::uuid, @topic, @cluster, @location, @every::interval, @size, @jobs, @deletes::interval)
		ON CONFLICT (topic_id) DO UPDATE SET location = excluded.location, roll_every = excluded.roll_every, roll_size = excluded.roll_size,
			wanted_by = excluded.wanted_by, delete_retention = excluded.delete_retention, marked_at = CASE WHEN a.location = excluded.location THEN a.marked_at END
		WHERE (a.location, a.roll_every, a.roll_size, a.wanted_by, a.delete_retention) IS DISTINCT FROM
			(excluded.location, excluded.roll_every, excluded.roll_size, excluded.wanted_by, excluded.delete_retention)`,
		pgx.NamedArgs{
			"topic_id": w.TopicID.String(), "topic": w.Topic, "cluster": w.Cluster, "location": w.Location,
			"every": pg.Interval(w.RollEvery), "size": w.RollSize, "jobs": w.Jobs, "deletes": deletes,
		})
	if err != nil {
		return fmt.Errorf("ask for the archive of %s: %w", w.Topic, err)
	}
	return nil
}

// AddPartitions adds the partitions that an archive does not have yet: each begins at its log's start as it is now.
func (Store) AddPartitions(ctx context.Context, db pg.DB, facts []job.PartitionFacts) error {
	var topics []string
	var partitions []int32
	var starts []int64
	for _, f := range facts {
		if f.Err == nil { // the others are asked again at the next look
			topics, partitions, starts = append(topics, f.TopicID.String()), append(partitions, f.ID), append(starts, f.Start)
		}
	}
	if len(partitions) == 0 {
		return nil
	}
	// A topic that was missing for a while is there again.
	_, err := db.Exec(ctx, `INSERT INTO kappactl.archive_position (topic_id, partition, start_offset, next)
		SELECT f.topic_id, f.partition, f.start, f.start
		FROM unnest(@topics::uuid[], @partitions::integer[], @starts::bigint[]) f (topic_id, partition, start)
		ON CONFLICT (topic_id, partition) DO UPDATE SET fault = '', fault_detail = ''
			WHERE kappactl.archive_position.fault = 'missing'`,
		pgx.NamedArgs{"topics": topics, "partitions": partitions, "starts": starts})
	if err != nil {
		return fmt.Errorf("add partitions to the archive: %w", err)
	}
	return nil
}

// NeedsArchiver is SQL: the position r belongs to an archive that jobs want, and has no fault.
const NeedsArchiver = `r.fault = '' AND EXISTS (SELECT FROM kappactl.archive a WHERE a.topic_id = r.topic_id AND a.wanted_by <> '{}')`

// Wish is what jobs want of the archive of one topic.
type Wish struct {
	Location  string
	RollEvery time.Duration // the shortest
	RollSize  int64         // the smallest
	Jobs      []string      // sorted
	clusters  []string      // that the jobs read; an empty one is not known yet
}

// In reports whether the topic is one of the cluster of that id.
func (w Wish) In(cluster string) bool {
	return !slices.ContainsFunc(w.clusters, func(c string) bool { return c != "" && c != cluster })
}

// Wishes are what the job files that are in force want, by topic: of each job the newest version that is not standby,
// or else the newest. Jobs that want one topic at two locations are refused when they are deployed; should there be
// some, the first by name has its way.
func (Store) Wishes(ctx context.Context, db pg.DB) (map[string]Wish, error) {
	type row struct {
		Job, Cluster, Topic, Location string
		Every, Size                   int64
	}
	rows, err := pg.Collect(ctx, db, pgx.RowToStructByPos[row], `
		SELECT n.job, j.cluster_id, t.topic, n.spec -> 'archive' ->> 'location',
			(n.spec -> 'archive' -> 'roll' ->> 'every')::bigint, (n.spec -> 'archive' -> 'roll' ->> 'size')::bigint
		FROM (SELECT DISTINCT ON (v.job) v.job, v.spec FROM kappactl.version v
			WHERE v.ended_at IS NULL AND v.number > 0 AND v.phase <> 'retiring'
			ORDER BY v.job, v.phase = 'standby', v.number DESC) n
		JOIN kappactl.job j ON j.name = n.job AND j.dropping_at IS NULL
		CROSS JOIN LATERAL jsonb_array_elements_text(n.spec -> 'source' -> 'topics') t (topic)
		WHERE n.spec ? 'archive' ORDER BY n.job, t.topic`)
	if err != nil {
		return nil, fmt.Errorf("read which topics jobs want archived: %w", err)
	}
	out := map[string]Wish{}
	for _, r := range rows {
		w, other := out[r.Topic]
		if !other {
			w = Wish{Location: r.Location, RollEvery: time.Duration(r.Every), RollSize: r.Size}
		}
		w.RollEvery, w.RollSize = min(w.RollEvery, time.Duration(r.Every)), min(w.RollSize, r.Size)
		w.Jobs, w.clusters = append(w.Jobs, r.Job), append(w.clusters, r.Cluster)
		out[r.Topic] = w
	}
	return out, nil
}

// Unwant ends the archives of all topics but these: their files stay.
func (Store) Unwant(ctx context.Context, db pg.DB, but []string) error {
	if but == nil {
		but = []string{}
	}
	_, err := db.Exec(ctx, `UPDATE kappactl.archive SET wanted_by = '{}' WHERE wanted_by <> '{}' AND topic <> ALL(@topics)`, pgx.NamedArgs{"topics": but})
	if err != nil {
		return fmt.Errorf("end archives that no job wants: %w", err)
	}
	return nil
}
