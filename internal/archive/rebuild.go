package archive

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Rebuilt is a file that Rebuild has put back into the manifest.
type Rebuilt struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	job.Range
	Name string `json:"name"`
}

// Adopt takes the archive whose marker is at the location as this one, as after a loss of the database.
func (Store) Adopt(ctx context.Context, db pg.DB, at *Locations, a Archive) (Archive, error) {
	l, err := at.Open(a.Location)
	if err != nil {
		return a, err
	}
	found, err := readMarker(ctx, l, a)
	if err != nil || found == "" {
		return a, errors.Join(err, &MarkerError{Location: a.Location, Topic: a.Topic, Want: a.ID})
	}
	_, err = db.Exec(ctx, `UPDATE kappactl.archive SET id = @id::uuid, marked_at = clock_timestamp() WHERE topic_id = @topic_id::uuid`,
		pgx.NamedArgs{"id": found, "topic_id": a.TopicID.String()})
	if err != nil {
		return a, fmt.Errorf("adopt the archive of %s: %w", a.Topic, err)
	}
	a.ID = found
	return a, nil
}

// Rebuild puts files back into the manifest that no row names and that go on where a partition's archive ends, or make
// all of one that has no rows: what a database lost that was restored from a backup. Hash, footer and contiguity are
// checked; done gets each file that was taken, found each that is damaged.
func (s Store) Rebuild(
	ctx context.Context, pool *pg.Pool, at *Locations, a Archive, temp string, done func(Rebuilt), found func(Finding),
) error {
	l, err := at.Open(a.Location)
	if err != nil {
		return err
	}
	if err := CheckMarker(ctx, l, a.Location, a); err != nil {
		return err
	}
	byPartition := map[int32][]candidate{}
	for e, err := range l.List(ctx, Folder(a.Topic, a.TopicID)) {
		if err != nil {
			return fmt.Errorf("list the files of the archive of %s at %s: %w", a.Topic, a.Location, err)
		}
		if p, r, digits, ok := ParseName(e.Name); ok && p.TopicID == a.TopicID && p.Topic == a.Topic {
			byPartition[p.ID] = append(byPartition[p.ID], candidate{Entry: e, r: r, digits: digits})
		}
	}
	for id, files := range byPartition {
		slices.SortFunc(files, func(x, y candidate) int {
			return cmp.Or(cmp.Compare(x.r.From, y.r.From),
				cmp.Compare(y.r.To, x.r.To))
		})
		if err := s.rebuild(ctx, pool, l, a, job.Partition{Topic: a.Topic, TopicID: a.TopicID, ID: id}, files, temp, done,
			found); err != nil {
			return err
		}
	}
	return nil
}

// candidate is a file that may belong to the manifest.
type candidate struct {
	Entry
	r      job.Range
	digits string
}

// rebuild takes the files of one partition, in the order of offsets, the longest of those with the same start first.
func (s Store) rebuild(
	ctx context.Context, pool *pg.Pool, l Location, a Archive, p job.Partition, files []candidate, temp string,
	done func(Rebuilt), found func(Finding),
) error {
	next, err := s.beginning(ctx, pool, p, files[0].r.From)
	if err != nil {
		return err
	}
	for _, c := range files {
		if c.r.From != next {
			continue
		}
		row, err := readCandidate(ctx, l, a, p, c, temp)
		var damaged *DamagedError
		if errors.As(err, &damaged) {
			found(Finding{
				Topic: p.Topic, Partition: p.ID, From: c.r.From, To: c.r.To, File: a.Location + "/" + c.Name,
				Cause: damaged.Why,
			})
			continue
		}
		if err != nil {
			return err
		}
		if err := s.putBack(ctx, pool, row); err != nil {
			return err
		}
		next = c.r.To
		done(Rebuilt{Topic: p.Topic, Partition: p.ID, Range: c.r, Name: c.Name})
	}
	return nil
}

// beginning is where a partition's archive ends; one without rows begins at the first file.
func (Store) beginning(ctx context.Context, db pg.DB, p job.Partition, first int64) (next int64, err error) {
	err = db.QueryRow(ctx, `INSERT INTO kappactl.archive_position AS p (topic_id, partition, start_offset, next)
		VALUES (@topic_id::uuid, @partition, @first, @first)
		ON CONFLICT (topic_id, partition) DO UPDATE SET
			start_offset = CASE WHEN p.start_offset = p.next THEN least(p.start_offset, @first) ELSE p.start_offset END,
			next = CASE WHEN p.start_offset = p.next THEN least(p.next, @first) ELSE p.next END
		RETURNING next`, pgx.NamedArgs{"topic_id": p.TopicID.String(), "partition": p.ID, "first": first}).Scan(&next)
	if err != nil {
		return 0, fmt.Errorf("read where the archive of %s ends: %w", p, err)
	}
	return next, nil
}

// readCandidate reads a file whole and makes the row that it had; a *DamagedError when name, hash, footer and records
// do not fit.
func readCandidate(ctx context.Context, l Location, a Archive, p job.Partition, c candidate, temp string) (row FileRow,
	err error,
) {
	row = FileRow{Partition: p, Range: c.r, Location: a.Location, Name: c.Name}
	local, err := os.CreateTemp(temp, "rebuild-*.parquet")
	if err != nil {
		return row, err
	}
	defer func() { err = errors.Join(err, local.Close(), os.Remove(local.Name())) }()
	if row.Bytes, row.SHA256, err = copied(ctx, l, c.Name, local, math.MaxInt64); err != nil {
		return row, fmt.Errorf("read archive file %s/%s: %w", a.Location, c.Name, err)
	}
	damaged := func(format string, args ...any) error {
		return &DamagedError{Location: a.Location, Name: c.Name, Why: fmt.Sprintf(format, args...)}
	}
	if digits := hex.EncodeToString(row.SHA256); !strings.HasPrefix(digits, c.digits) {
		return row, damaged("its SHA-256 is %s, its name was made from one that begins with %s", digits, c.digits)
	}
	f, err := NewFile(local)
	if err != nil {
		return row, damaged("%s", err)
	}
	if f.Footer.Partition != p || f.Footer.Range != c.r || f.Footer.Cluster != a.Cluster {
		return row, damaged("its footer names %s %s of cluster %s", f.Footer.Partition, f.Footer.Range, f.Footer.Cluster)
	}
	row.Records, row.LeaderEpoch = f.Footer.Records, f.Footer.LeaderEpoch
	return row, timestamps(f, &row)
}

// timestamps reads the records of a file for the least and the largest of their timestamps.
func timestamps(f *File, row *FileRow) error {
	for {
		records, err := f.Next(batchRows)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &DamagedError{Location: row.Location, Name: row.Name, Why: err.Error()}
		}
		for _, r := range records {
			ms := r.Timestamp.UnixMilli()
			if row.MinTimestamp == nil {
				row.MinTimestamp, row.MaxTimestamp = new(ms), new(ms)
			}
			*row.MinTimestamp, *row.MaxTimestamp = min(*row.MinTimestamp, ms), max(*row.MaxTimestamp, ms)
		}
	}
}

// putBack inserts a row where the archive of its partition ends. An archiver that has read on from there begins again
// behind it.
func (Store) putBack(ctx context.Context, pool *pg.Pool, f FileRow) error {
	err := pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE kappactl.archive_position SET next = @to, leader_epoch = @epoch,
				fault = CASE WHEN fault = 'gap' AND fault_to <= @to THEN '' ELSE fault END
			WHERE topic_id = @topic_id::uuid AND partition = @partition AND next = @from`,
			pgx.NamedArgs{"topic_id": f.TopicID.String(), "partition": f.ID, "from": f.From, "to": f.To, "epoch": f.LeaderEpoch})
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return errMoved
		}
		return insertFile(ctx, tx, f)
	})
	if err != nil {
		return fmt.Errorf("put %s back into the archive: %w", f.Name, err)
	}
	return nil
}

var errMoved = errors.New("an agent has published to this partition meanwhile; run archive rebuild again")
