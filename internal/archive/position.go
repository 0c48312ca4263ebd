package archive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/faultpoint"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Archive is the archive of one topic.
type Archive struct {
	ID       string // in its marker
	Topic    string
	TopicID  job.TopicID
	Cluster  string // Kafka's cluster id
	Location string // of new files
	// Marked reports whether the marker was written at Location.
	Marked    bool
	RollEvery time.Duration // the most time between two files of a partition with new records
	RollSize  int64         // bytes of a file at which it is published
	Jobs      []string      // that want it; none: it has ended, and its files stay
}

// Position is how far one partition is archived, and who archives it.
type Position struct {
	ItemID int64 // for leases
	Archive
	Partition   int32
	Start       int64 // the first offset that the archive was asked to hold
	Next        int64
	LeaderEpoch int32
	Claim       int64
	Fault       job.Fault
	Since       time.Duration // since the last file was published, or since the partition was added
}

// Of is the partition.
func (p Position) Of() job.Partition {
	return job.Partition{Topic: p.Topic, TopicID: p.TopicID, ID: p.Partition}
}

const archiveColumns = `a.id::text, a.topic, a.topic_id, a.cluster_id, a.location, a.marked_at IS NOT NULL,
	(extract(epoch FROM a.roll_every) * 1e9)::bigint, a.roll_size, a.wanted_by`

func scanArchive(row pgx.CollectableRow) (a Archive, err error) {
	err = row.Scan(a.into()...)
	return a, err
}

// into are the targets of archiveColumns.
func (a *Archive) into() []any {
	return []any{
		&a.ID, &a.Topic, (*[16]byte)(&a.TopicID), &a.Cluster, &a.Location, &a.Marked, &a.RollEvery, &a.RollSize, &a.Jobs,
	}
}

const positionColumns = archiveColumns + `, p.id, p.partition, p.start_offset, p.next, p.leader_epoch, p.claim,
	p.fault, p.fault_detail, coalesce(p.fault_from, 0), coalesce(p.fault_to, 0),
	(extract(epoch FROM clock_timestamp() - p.published_at) * 1e9)::bigint`

func scanPosition(row pgx.CollectableRow) (p Position, err error) {
	err = row.Scan(append(p.into(), &p.ItemID, &p.Partition, &p.Start, &p.Next, &p.LeaderEpoch, &p.Claim,
		&p.Fault.Kind, &p.Fault.Detail, &p.Fault.From, &p.Fault.To, &p.Since)...)
	return p, err
}

// ErrLost is a claim that another agent has taken over, or an archive that is not wanted any more.
var ErrLost = errors.New("another agent has taken over this partition of the archive")

// Held returns the position of an item that is held under a claim; ErrLost when it is not.
func (Store) Held(ctx context.Context, db pg.DB, item, claim int64) (Position, error) {
	found, err := pg.Collect(ctx, db, scanPosition, `SELECT `+positionColumns+`
		FROM kappactl.archive_position p JOIN kappactl.archive a USING (topic_id) WHERE p.id = @item AND p.claim = @claim`,
		pgx.NamedArgs{"item": item, "claim": claim})
	if err != nil {
		return Position{}, fmt.Errorf("read position %d of the archive: %w", item, err)
	}
	if len(found) == 0 {
		return Position{}, ErrLost
	}
	return found[0], nil
}

// Marked notes that the marker of an archive was written at its location.
func (Store) Marked(ctx context.Context, db pg.DB, a Archive) error {
	_, err := db.Exec(ctx, `UPDATE kappactl.archive SET marked_at = clock_timestamp()
		WHERE topic_id = @topic_id::uuid AND location = @location AND marked_at IS NULL`,
		pgx.NamedArgs{"topic_id": a.TopicID.String(), "location": a.Location})
	if err != nil {
		return fmt.Errorf("note the marker of the archive of %s: %w", a.Topic, err)
	}
	return nil
}

// Publish adds a file to the manifest and moves the position to the end of its range, in one transaction. ErrLost when
// the claim is lost or the position is elsewhere: the file is then an orphan.
func (s Store) Publish(ctx context.Context, pool *pg.Pool, p Position, f Finished) error {
	row := f.row(p)
	err := pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := s.lock(ctx, tx, p, row.From); err != nil {
			return err
		}
		if err := insertFile(ctx, tx, row); err != nil {
			return err
		}
		if err := advance(ctx, tx, p.ItemID, row.To, row.LeaderEpoch, f.CaughtUp); err != nil {
			return err
		}
		faultpoint.Hit(BeforeCommit)
		return nil
	})
	if err != nil && !errors.Is(err, ErrLost) {
		return fmt.Errorf("publish %s of the archive: %w", row.Name, err)
	}
	return err
}

// row is the row of the manifest of a file that is stored where new files of p are.
func (f Finished) row(p Position) FileRow {
	row := FileRow{
		Partition: p.Of(), Range: f.Footer.Range, Location: p.Location, Name: f.Name(), Records: f.Footer.Records,
		Bytes:  f.Bytes,
		SHA256: f.SHA256, LeaderEpoch: f.Footer.LeaderEpoch,
	}
	if row.Records > 0 {
		row.MinTimestamp, row.MaxTimestamp = &f.MinTimestamp, &f.MaxTimestamp
	}
	return row
}

// lock locks the position and checks that it is still the claim's and at next.
func (Store) lock(ctx context.Context, tx *pg.Tx, p Position, next int64) error {
	var found bool
	err := tx.QueryRow(ctx, `SELECT claim = @claim AND next = @next AND fault = '' FROM kappactl.archive_position WHERE id = @item FOR UPDATE`,
		pgx.NamedArgs{"item": p.ItemID, "claim": p.Claim, "next": next}).Scan(&found)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && !found {
		return ErrLost
	}
	return err
}

func insertFile(ctx context.Context, tx *pg.Tx, f FileRow) error {
	_, err := tx.Exec(ctx, `INSERT INTO kappactl.archive_file (topic_id, partition, from_offset, to_offset, location, name, records, bytes,
			sha256, leader_epoch, min_timestamp, max_timestamp)
		VALUES (@topic_id::uuid, @partition, @from, @to, @location, @name, @records, @bytes, @sha256, @epoch, @min, @max)`,
		pgx.NamedArgs{
			"topic_id": f.TopicID.String(), "partition": f.ID, "from": f.From, "to": f.To, "location": f.Location,
			"name":    f.Name,
			"records": f.Records, "bytes": f.Bytes, "sha256": f.SHA256, "epoch": f.LeaderEpoch, "min": f.MinTimestamp,
			"max": f.MaxTimestamp,
		})
	return err
}

func advance(ctx context.Context, tx *pg.Tx, item, next int64, epoch int32, caughtUp *time.Duration) error {
	var ago *string
	if caughtUp != nil {
		ago = new(pg.Interval(*caughtUp))
	}
	_, err := tx.Exec(ctx, `UPDATE kappactl.archive_position SET next = @next, leader_epoch = @epoch, published_at = clock_timestamp(),
			caught_up_at = greatest(caught_up_at, clock_timestamp() - @ago::interval)
		WHERE id = @item`, pgx.NamedArgs{"item": item, "next": next, "epoch": epoch, "ago": ago})
	return err
}

// NoteError notes what the last attempt under a claim failed with; empty: nothing. It is tried again.
func (Store) NoteError(ctx context.Context, db pg.DB, p Position, text string) error {
	_, err := db.Exec(ctx, `UPDATE kappactl.archive_position SET error = @text WHERE id = @item AND claim = @claim AND error <> @text`,
		pgx.NamedArgs{"item": p.ItemID, "claim": p.Claim, "text": text})
	if err != nil {
		return fmt.Errorf("note the error of %s in the archive: %w", p.Of(), err)
	}
	return nil
}

// NoteFault ends the archiving of a partition under a claim until a person has acted.
func (Store) NoteFault(ctx context.Context, db pg.DB, p Position, f job.Fault) error {
	_, err := db.Exec(ctx, `UPDATE kappactl.archive_position SET fault = @kind, fault_detail = @detail, fault_from = @from, fault_to = @to
		WHERE id = @item AND claim = @claim`,
		pgx.NamedArgs{"item": p.ItemID, "claim": p.Claim, "kind": f.Kind, "detail": f.Detail, "from": f.From, "to": f.To})
	if err != nil {
		return fmt.Errorf("note the fault of %s in the archive: %w", p.Of(), err)
	}
	return nil
}
