package archive

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

type spanKey struct {
	id        job.TopicID
	partition int32
}

// spans are the ranges without a gap that end at or behind the given starts of logs.
func spans(ctx context.Context, db pg.DB, ids []string, partitions []int32, starts []int64) (map[spanKey]job.Range,
	error,
) {
	type row struct {
		ID        [16]byte
		Partition int32
		From, To  int64
	}
	rows, err := pg.Collect(ctx, db, pgx.RowToStructByPos[row], `
		SELECT p.topic_id, p.partition, coalesce(
				(SELECT max(g.to_offset) FROM kappactl.archive_file g
				  WHERE g.topic_id = p.topic_id AND g.partition = p.partition AND g.name = '' AND g.from_offset < w.start),
				(SELECT f.from_offset FROM kappactl.archive_file f
				  WHERE f.topic_id = p.topic_id AND f.partition = p.partition ORDER BY f.from_offset LIMIT 1),
				p.next), p.next
		FROM unnest(@ids::uuid[], @partitions::integer[], @starts::bigint[]) AS w (topic_id, partition, start)
		JOIN kappactl.archive_position p USING (topic_id, partition)
		WHERE p.next >= w.start`,
		pgx.NamedArgs{"ids": ids, "partitions": partitions, "starts": starts})
	if err != nil {
		return nil, err
	}
	out := make(map[spanKey]job.Range, len(rows))
	for _, r := range rows {
		out[spanKey{r.ID, r.Partition}] = job.Range{From: r.From, To: r.To}
	}
	return out, nil
}

// Topics are topics as the archive alone knows them, the newest of each name: logs that begin and end where it does,
// and that are kept for ever.
func (Store) Topics(ctx context.Context, db pg.DB, names []string) ([]job.TopicFacts, error) {
	type row struct {
		Topic     string
		ID        [16]byte
		Partition int32
		Epoch     int32
		From, To  int64
	}
	rows, err := pg.Collect(ctx, db, pgx.RowToStructByPos[row], `
		SELECT a.topic, a.topic_id, p.partition, p.leader_epoch, greatest(
				coalesce((SELECT f.from_offset FROM kappactl.archive_file f
				  WHERE f.topic_id = p.topic_id AND f.partition = p.partition ORDER BY f.from_offset LIMIT 1), p.next),
				(SELECT max(g.to_offset) FROM kappactl.archive_file g
				  WHERE g.topic_id = p.topic_id AND g.partition = p.partition AND g.name = '')), p.next
		FROM (SELECT DISTINCT ON (topic) topic, topic_id FROM kappactl.archive WHERE topic = ANY (@names) ORDER BY topic, created_at DESC) a
		JOIN kappactl.archive_position p USING (topic_id) ORDER BY array_position(@names::text[], a.topic), p.partition`,
		pgx.NamedArgs{"names": names})
	if err != nil {
		return nil, fmt.Errorf("read what the archive holds of %v: %w", names, err)
	}
	var out []job.TopicFacts
	for _, r := range rows {
		if len(out) == 0 || out[len(out)-1].Name != r.Topic {
			out = append(out, job.TopicFacts{
				Name: r.Topic, ID: r.ID, RetentionMS: -1, RetentionBytes: -1,
				DeleteRetentionMS: -1,
			})
		}
		t := &out[len(out)-1]
		t.Partitions = append(t.Partitions, job.PartitionFacts{
			Partition: job.Partition{Topic: r.Topic, TopicID: r.ID, ID: r.Partition}, LeaderEpoch: r.Epoch, Start: r.From,
			LastStable: r.To, End: r.To,
		})
	}
	for _, name := range names {
		if !hasTopic(out, name) {
			return nil, fmt.Errorf("the archive holds nothing of topic %s yet", name)
		}
	}
	return out, nil
}

func hasTopic(facts []job.TopicFacts, name string) bool {
	for _, f := range facts {
		if f.Name == name {
			return true
		}
	}
	return false
}

// FileSince is the first file from an offset on that holds a record whose timestamp is at or after a time in
// milliseconds.
func (Store) FileSince(ctx context.Context, db pg.DB, p job.Partition, from, ms int64) (f FileRow, ok bool, err error) {
	f, err = one(ctx, db, `SELECT `+fileColumns+` FROM kappactl.archive_file f JOIN kappactl.archive a USING (topic_id)
		WHERE f.topic_id = @topic_id::uuid AND f.partition = @partition AND f.from_offset = (
			SELECT t.from_offset FROM kappactl.archive_file t
			WHERE t.topic_id = @topic_id::uuid AND t.partition = @partition AND t.from_offset >= @from AND t.max_timestamp >= @ms
			ORDER BY t.from_offset LIMIT 1)`,
		pgx.NamedArgs{"topic_id": p.TopicID.String(), "partition": p.ID, "from": from, "ms": ms})
	if errors.Is(err, pgx.ErrNoRows) {
		return FileRow{}, false, nil
	}
	if err != nil {
		return FileRow{}, false, fmt.Errorf("look for the time of %s in the archive: %w", p, err)
	}
	return f, true, nil
}

// Size is the sum of the bytes of a partition's files that begin before an offset.
func (Store) Size(ctx context.Context, db pg.DB, p job.Partition, before int64) (bytes int64, err error) {
	err = db.QueryRow(ctx, `SELECT coalesce(sum(bytes), 0)::bigint FROM kappactl.archive_file
		WHERE topic_id = @topic_id::uuid AND partition = @partition AND from_offset < @before`,
		pgx.NamedArgs{"topic_id": p.TopicID.String(), "partition": p.ID, "before": before}).Scan(&bytes)
	if err != nil {
		return 0, fmt.Errorf("read the size of %s in the archive: %w", p, err)
	}
	return bytes, nil
}
