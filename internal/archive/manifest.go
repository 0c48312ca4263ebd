package archive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Store reads and writes the tables of the archive. Its methods take a pool or a transaction.
type Store struct{}

// FileRow is a row of the manifest: the range [From, To) of a partition and the file that holds its records.
type FileRow struct {
	job.Partition
	job.Range
	Archive     string // its id, which the marker at Location holds
	Location    string
	Name        string // empty: an accepted gap, whose records are lost
	Records     int64
	Bytes       int64
	SHA256      []byte
	LeaderEpoch int32
	// MinTimestamp and MaxTimestamp are those of its records in milliseconds; nil without records.
	MinTimestamp, MaxTimestamp *int64
	PublishedAt                time.Time
}

// Gap reports whether the range was accepted as lost.
func (f FileRow) Gap() bool { return f.Name == "" }

const fileColumns = `f.topic_id, a.id, a.topic, f.partition, f.from_offset, f.to_offset, f.location, f.name, f.records, f.bytes, f.sha256,
	f.leader_epoch, f.min_timestamp, f.max_timestamp, f.published_at`

func scanFile(row pgx.CollectableRow) (f FileRow, err error) {
	var id, archive [16]byte
	err = row.Scan(&id, &archive, &f.Topic, &f.ID, &f.From, &f.To, &f.Location, &f.Name, &f.Records, &f.Bytes, &f.SHA256,
		&f.LeaderEpoch, &f.MinTimestamp, &f.MaxTimestamp, &f.PublishedAt)
	f.TopicID, f.Archive = id, job.TopicID(archive).String()
	return f, err
}

// Locate returns the row whose range holds an offset of a partition; ok is false when the archive does not have it.
func (Store) Locate(ctx context.Context, db pg.DB, id job.TopicID, partition int32, offset int64) (f FileRow, ok bool,
	err error,
) {
	f, err = one(ctx, db, `SELECT `+fileColumns+` FROM kappactl.archive_file f JOIN kappactl.archive a USING (topic_id)
		WHERE f.topic_id = @topic_id::uuid AND f.partition = @partition AND f.from_offset <= @offset
		ORDER BY f.from_offset DESC LIMIT 1`,
		pgx.NamedArgs{"topic_id": id.String(), "partition": partition, "offset": offset})
	if errors.Is(err, pgx.ErrNoRows) {
		return FileRow{}, false, nil
	}
	if err != nil {
		return FileRow{}, false, fmt.Errorf("look up offset %d of topic id %s, partition %d in the archive: %w", offset, id,
			partition, err)
	}
	return f, offset < f.To, nil
}

func one(ctx context.Context, db pg.DB, sql string, args pgx.NamedArgs) (FileRow, error) {
	rows, err := db.Query(ctx, sql, args)
	if err != nil {
		return FileRow{}, err
	}
	return pgx.CollectExactlyOneRow(rows, scanFile)
}

// Files lists up to limit rows of a partition whose range ends behind from, in the order of offsets.
func (Store) Files(ctx context.Context, db pg.DB, id job.TopicID, partition int32, from int64, limit int) ([]FileRow,
	error,
) {
	files, err := pg.Collect(ctx, db, scanFile, `SELECT `+fileColumns+` FROM kappactl.archive_file f JOIN kappactl.archive a USING (topic_id)
		WHERE f.topic_id = @topic_id::uuid AND f.partition = @partition AND f.from_offset >= coalesce((
			SELECT max(b.from_offset) FROM kappactl.archive_file b
			WHERE b.topic_id = @topic_id::uuid AND b.partition = @partition AND b.from_offset <= @from), 0)
		  AND f.to_offset > @from
		ORDER BY f.from_offset LIMIT @limit`,
		pgx.NamedArgs{"topic_id": id.String(), "partition": partition, "from": from, "limit": limit})
	if err != nil {
		return nil, fmt.Errorf("list the archive files of topic id %s, partition %d: %w", id, partition, err)
	}
	return files, nil
}

// Bounds is what the archive holds of a partition from the first file behind an offset on, up to its end.
func (Store) Bounds(ctx context.Context, db pg.DB, of job.Partition, offset int64) (r job.Range, err error) {
	err = db.QueryRow(ctx, `SELECT coalesce((SELECT f.from_offset FROM kappactl.archive_file f
			WHERE f.topic_id = p.topic_id AND f.partition = p.partition AND f.from_offset > @offset AND f.name <> ''
			ORDER BY f.from_offset LIMIT 1), p.next), p.next
		FROM kappactl.archive_position p WHERE p.topic_id = @topic_id::uuid AND p.partition = @partition`,
		pgx.NamedArgs{"topic_id": of.TopicID.String(), "partition": of.ID, "offset": offset}).Scan(&r.From, &r.To)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, fmt.Errorf("the archive holds nothing of %s", of)
	}
	if err != nil {
		return r, fmt.Errorf("look for %s in the archive: %w", of, err)
	}
	return r, nil
}

// Whole is the offset up to which the archive holds a partition from an offset on, without a gap; the offset itself
// when it does not hold it.
func (s Store) Whole(ctx context.Context, db pg.DB, of job.Partition, offset int64) (int64, error) {
	row, ok, err := s.Locate(ctx, db, of.TopicID, of.ID, offset)
	if err != nil || !ok || row.Gap() {
		return offset, err
	}
	err = db.QueryRow(ctx, `SELECT coalesce((SELECT min(f.from_offset) FROM kappactl.archive_file f
			WHERE f.topic_id = p.topic_id AND f.partition = p.partition AND f.from_offset > @offset AND f.name = ''), p.next)
		FROM kappactl.archive_position p WHERE p.topic_id = @topic_id::uuid AND p.partition = @partition`,
		pgx.NamedArgs{"topic_id": of.TopicID.String(), "partition": of.ID, "offset": offset}).Scan(&offset)
	if err != nil {
		return 0, fmt.Errorf("look for the end of %s in the archive: %w", of, err)
	}
	return offset, nil
}
