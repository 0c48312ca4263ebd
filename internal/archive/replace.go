package archive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/faultpoint"
	"github.com/kappactl/kappactl/internal/pg"
)

// newest are up to limit rows of a partition, the last range first.
func (Store) newest(ctx context.Context, db pg.DB, p Position, limit int) ([]FileRow, error) {
	files, err := pg.Collect(ctx, db, scanFile, `SELECT `+fileColumns+` FROM kappactl.archive_file f JOIN kappactl.archive a USING (topic_id)
		WHERE f.topic_id = @topic_id::uuid AND f.partition = @partition ORDER BY f.from_offset DESC LIMIT @limit`,
		pgx.NamedArgs{"topic_id": p.TopicID.String(), "partition": p.Partition, "limit": limit})
	if err != nil {
		return nil, fmt.Errorf("list the newest archive files of %s: %w", p.Of(), err)
	}
	return files, nil
}

// Replace lists a merged file in place of those that it was made of, which are to be deleted after keep. ErrLost when
// the claim is lost or the manifest has changed meanwhile: the file is then an orphan.
func (s Store) Replace(ctx context.Context, pool *pg.Pool, p Position, files []FileRow, by Finished,
	keep time.Duration,
) error {
	row := by.row(p)
	err := pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := s.lockClaim(ctx, tx, p); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `WITH gone AS (DELETE FROM kappactl.archive_file
				WHERE topic_id = @topic_id::uuid AND partition = @partition AND from_offset >= @from AND to_offset <= @to AND name = ANY (@names)
				RETURNING topic_id, partition, from_offset, to_offset, location, name),
			typed AS (INSERT INTO kappactl.archive_replaced (topic_id, partition, from_offset, to_offset, location, name, delete_at)
				SELECT topic_id, partition, from_offset, g.to_offset, g.location, t.name, clock_timestamp() + @keep::interval
				FROM gone g JOIN kappactl.archive_typed t USING (topic_id, partition, from_offset))
			INSERT INTO kappactl.archive_replaced (topic_id, partition, from_offset, to_offset, location, name, delete_at)
			SELECT topic_id, partition, from_offset, to_offset, location, name, clock_timestamp() + @keep::interval FROM gone`,
			pgx.NamedArgs{
				"topic_id": row.TopicID.String(), "partition": row.ID, "from": row.From, "to": row.To, "names": names(files),
				"keep": pg.Interval(keep),
			})
		if err != nil {
			return err
		}
		if tag.RowsAffected() != int64(len(files)) {
			return ErrLost
		}
		if err := insertFile(ctx, tx, row); err != nil {
			return err
		}
		faultpoint.Hit(MergeBeforeCommit)
		return nil
	})
	if err != nil && !errors.Is(err, ErrLost) {
		return fmt.Errorf("replace %d files of %s in the archive: %w", len(files), p.Of(), err)
	}
	return err
}

func names(files []FileRow) []string {
	out := make([]string, len(files))
	for i, f := range files {
		out[i] = f.Name
	}
	return out
}

// lockClaim locks the position and checks that it is still the claim's.
func (Store) lockClaim(ctx context.Context, tx *pg.Tx, p Position) error {
	var found bool
	err := tx.QueryRow(ctx, `SELECT claim = @claim FROM kappactl.archive_position WHERE id = @item FOR UPDATE`,
		pgx.NamedArgs{"item": p.ItemID, "claim": p.Claim}).Scan(&found)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && !found {
		return ErrLost
	}
	return err
}

// Replaced is a file that was merged into another one.
type Replaced struct {
	Archive
	Partition int32
	Location  string
	Name      string
}

// Due lists up to limit replaced files whose time has come, by the database's clock.
func (Store) Due(ctx context.Context, db pg.DB, limit int) ([]Replaced, error) {
	out, err := pg.Collect(ctx, db, func(row pgx.CollectableRow) (r Replaced, err error) {
		err = row.Scan(append(r.into(), &r.Partition, &r.Location, &r.Name)...)
		return r, err
	}, `SELECT `+archiveColumns+`, r.partition, r.location, r.name FROM kappactl.archive_replaced r JOIN kappactl.archive a USING (topic_id)
		WHERE r.delete_at <= clock_timestamp() ORDER BY r.delete_at LIMIT @limit`, pgx.NamedArgs{"limit": limit})
	if err != nil {
		return nil, fmt.Errorf("list the replaced files of the archive: %w", err)
	}
	return out, nil
}

// Remove deletes a replaced file and forgets it. Where the marker is missing it does neither: another machine's folder
// has not got the file.
func (Store) Remove(ctx context.Context, db pg.DB, at *Locations, r Replaced) error {
	l, err := at.Open(r.Location)
	if err == nil {
		err = CheckMarker(ctx, l, r.Location, r.Archive)
	}
	if err == nil {
		err = l.Delete(ctx, r.Name)
	}
	if err == nil {
		_, err = db.Exec(ctx, `DELETE FROM kappactl.archive_replaced
			WHERE topic_id = @topic_id::uuid AND partition = @partition AND location = @location AND name = @name`,
			pgx.NamedArgs{"topic_id": r.TopicID.String(), "partition": r.Partition, "location": r.Location, "name": r.Name})
	}
	if err != nil {
		return fmt.Errorf("remove %s/%s, which was merged into another file of the archive: %w", r.Location, r.Name, err)
	}
	return nil
}

// replacedNames are the files of a topic that wait to be deleted.
func (Store) replacedNames(ctx context.Context, db pg.DB, a Archive) (map[string]bool, error) {
	found, err := pg.Collect(ctx, db, pgx.RowTo[string],
		`SELECT name FROM kappactl.archive_replaced WHERE topic_id = @topic_id::uuid`,
		pgx.NamedArgs{"topic_id": a.TopicID.String()})
	if err != nil {
		return nil, fmt.Errorf("list the replaced files of the archive of %s: %w", a.Topic, err)
	}
	out := map[string]bool{}
	for _, name := range found {
		out[name] = true
	}
	return out, nil
}
