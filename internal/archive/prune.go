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

// Prunable is what goes of a partition when its archive is to begin with the first file that has a record of a time or later.
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

// Unlist removes the rows of what Prunable found from the manifest, and returns their files, which are to be deleted once the
// transaction is committed.
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

// Delete deletes files that were unlisted. One that could not be deleted is left as an orphan, and the error of the first is
// returned.
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
