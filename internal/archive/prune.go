package archive

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Prune is what is removed from the beginning of a partition's archive.
type Prune struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	job.Range
	Files   int64 `json:"files"`
	Records int64 `json:"records"`
	Bytes   int64 `json:"bytes"`

	of Status
}

// TopicID is the id of its topic.
func (p Prune) TopicID() string { return p.of.TopicID }

// Jobs are those that want the archive.
func (p Prune) Jobs() []string { return p.of.Jobs }

// Prunable is what goes of a partition when its archive is to begin with the first file that has a record of a time or
// later.
func (Store) Prunable(ctx context.Context, db pg.DB, of Status, before time.Time) (Prune, error) {
	out := Prune{Topic: of.Topic, Partition: of.Partition, of: of}
	out.From = of.Start
	err := db.QueryRow(ctx, `WITH keep AS (
			SELECT coalesce(min(from_offset), @next) AS first FROM kappactl.archive_file
			WHERE topic_id = @topic_id::uuid AND partition = @partition AND max_timestamp >= @before)
		SELECT keep.first, count(f.*) FILTER (WHERE f.name <> ''), coalesce(sum(f.records), 0)::bigint, coalesce(sum(f.bytes), 0)::bigint
		FROM keep LEFT JOIN kappactl.archive_file f
			ON f.topic_id = @topic_id::uuid AND f.partition = @partition AND f.from_offset < keep.first
		GROUP BY keep.first`,
		pgx.NamedArgs{"topic_id": of.TopicID, "partition": of.Partition, "next": of.Next, "before": before.UnixMilli()}).
		Scan(&out.To, &out.Files, &out.Records, &out.Bytes)
	if err != nil {
		return out, fmt.Errorf("look for what is old in the archive of %s: %w", of.Of(), err)
	}
	return out, nil
}

// Unlisted is a file that no row of the manifest names any more.
type Unlisted struct{ Location, Name string }

// Unlist removes the rows of what Prunable found from the manifest, and returns their files, which are to be deleted
// once the transaction is committed.
func (Store) Unlist(ctx context.Context, tx *pg.Tx, p Prune) ([]Unlisted, error) {
	args := pgx.NamedArgs{"topic_id": p.of.TopicID, "partition": p.Partition, "to": p.To}
	_, err := tx.Exec(ctx, `UPDATE kappactl.archive_position SET start_offset = greatest(start_offset, @to)
		WHERE topic_id = @topic_id::uuid AND partition = @partition`, args)
	if err != nil {
		return nil, fmt.Errorf("prune the archive of %s: %w", p.of.Of(), err)
	}
	out, err := pg.Collect(ctx, tx, pgx.RowToStructByPos[Unlisted], `WITH gone AS (DELETE FROM kappactl.archive_file
			WHERE topic_id = @topic_id::uuid AND partition = @partition AND from_offset < @to
			RETURNING topic_id, partition, from_offset, location, name),
		replaced AS (DELETE FROM kappactl.archive_replaced
			WHERE topic_id = @topic_id::uuid AND partition = @partition AND to_offset <= @to RETURNING location, name)
		SELECT location, name FROM gone WHERE name <> '' UNION ALL SELECT location, name FROM replaced
		UNION ALL SELECT g.location, t.name FROM gone g JOIN kappactl.archive_typed t USING (topic_id, partition, from_offset)`, args)
	if err != nil {
		return nil, fmt.Errorf("prune the archive of %s: %w", p.of.Of(), err)
	}
	return out, nil
}

// Delete deletes files that were unlisted. One that could not be deleted is left as an orphan, and the error of the
// first is returned.
func (Store) Delete(ctx context.Context, at *Locations, files []Unlisted) error {
	var failed error
	for _, f := range files {
		l, err := at.Open(f.Location)
		if err == nil {
			err = l.Delete(ctx, f.Name)
		}
		if err != nil && failed == nil {
			failed = fmt.Errorf("remove %s/%s, which no row of the archive names any more: %w", f.Location, f.Name, err)
		}
	}
	return failed
}

// Need is a version that reads offsets which are to be pruned.
type Need struct {
	Job       string `json:"job"`
	Version   int32  `json:"version"`
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	From      int64  `json:"from"` // the first offset that it still reads
}

// Needed lists the versions that may still read what Prunable found: each run of a lambda version begins where the
// version covers its topics, a replay where its first segment that is not done does, and every other version where it
// has read to.
func (Store) Needed(ctx context.Context, db pg.DB, plans []Prune) ([]Need, error) {
	var ids []string
	var partitions []int32
	var ends []int64
	for _, p := range plans {
		ids, partitions, ends = append(ids, p.of.TopicID), append(partitions, p.Partition), append(ends, p.To)
	}
	out, err := pg.Collect(ctx, db, pgx.RowToStructByPos[Need], `
		SELECT n.job, n.number, n.topic, n.partition, n.needed FROM (
			SELECT p.job, p.number, p.topic, p.partition, g.to_offset, CASE WHEN v.spec ->> 'mode' = 'lambda' THEN p.covers_from
				ELSE least(p.next, (SELECT min(s.from_offset) FROM kappactl.segment s WHERE (s.job, s.number) = (p.job, p.number)
					AND (s.topic_id, s.partition) = (p.topic_id, p.partition) AND s.state <> 'done')) END AS needed
			FROM unnest(@ids::uuid[], @partitions::integer[], @ends::bigint[]) g (topic_id, partition, to_offset)
			JOIN kappactl.position p USING (topic_id, partition)
			JOIN kappactl.version v USING (job, number)
			WHERE v.ended_at IS NULL AND v.phase <> 'retiring' AND v.spec -> 'replay' ->> 'source' IS DISTINCT FROM 'log') n
		WHERE n.needed < n.to_offset ORDER BY n.job, n.number, n.topic, n.partition`,
		pgx.NamedArgs{"ids": ids, "partitions": partitions, "ends": ends})
	if err != nil {
		return nil, fmt.Errorf("look for versions that need what is pruned: %w", err)
	}
	return out, nil
}
