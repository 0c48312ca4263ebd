package typed

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

const (
	keptLook  = 256 // how many of a partition's newest files are looked at
	keptFiles = 4   // how many of them are typed at once
)

// Keep lets agents type what is archived of the topics of a source from now on.
func (Store) Keep(ctx context.Context, db pg.DB, src job.Source) error {
	_, err := db.Exec(ctx, `UPDATE kappactl.archive SET typed = array_append(typed, @fingerprint::text)
		WHERE topic = ANY (@topics) AND @fingerprint::text <> ALL (typed)`, pgx.NamedArgs{"topics": src.Topics, "fingerprint": Fingerprint(src)})
	if err != nil {
		return fmt.Errorf("ask for typed columns of %v: %w", src.Topics, err)
	}
	return nil
}

// TypeKept makes typed files of the newest files of a partition's archive for the versions whose typed columns are
// kept. Files that are still to be merged, those under a quarter of the size at which files roll, are left out: a merge
// removes their typed files.
func (s Store) TypeKept(ctx context.Context, db pg.DB, at *archive.Locations, p archive.Position, temp string) (Total,
	error,
) {
	var total Total
	sources, err := kept(ctx, db, p.TopicID)
	if err != nil {
		return total, err
	}
	for fingerprint, src := range sources {
		offsets, err := missing(ctx, db, p, fingerprint)
		if err != nil {
			return total, err
		}
		for _, offset := range offsets {
			f, ok, err := archive.Store{}.Locate(ctx, db, p.TopicID, p.Partition, offset)
			if err != nil || !ok {
				return total, err
			}
			m, made, err := s.one(ctx, db, at, f, src, fingerprint, temp)
			if err != nil {
				return total, fmt.Errorf("store typed columns of %s: %w", f.Name, err)
			}
			if made {
				total.Files, total.Records, total.Bytes = total.Files+1, total.Records+f.Records, total.Bytes+m.Bytes
			}
		}
	}
	return total, nil
}

// kept are the sources of versions whose typed columns of a topic are kept, by fingerprint.
func kept(ctx context.Context, db pg.DB, topic job.TopicID) (map[string]job.Source, error) {
	type row struct {
		Source []byte
		Typed  []string
	}
	rows, err := pg.Collect(ctx, db, pgx.RowToStructByPos[row], `SELECT DISTINCT v.spec -> 'source', a.typed
		FROM kappactl.archive a JOIN kappactl.version v ON v.ended_at IS NULL AND v.number > 0 AND v.spec -> 'source' -> 'topics' ? a.topic
		WHERE a.topic_id = @topic_id::uuid AND a.typed <> '{}'`, pgx.NamedArgs{"topic_id": topic.String()})
	if err != nil {
		return nil, fmt.Errorf("read which typed columns are kept: %w", err)
	}
	out := map[string]job.Source{}
	for _, r := range rows {
		var src job.Source
		if err := json.Unmarshal(r.Source, &src); err != nil {
			return nil, fmt.Errorf("read which columns versions declare: %w", err)
		}
		if f := Fingerprint(src); slices.Contains(r.Typed, f) {
			out[f] = src
		}
	}
	return out, nil
}

// missing are the first offsets of files without typed columns of a fingerprint, among the newest of a partition.
func missing(ctx context.Context, db pg.DB, p archive.Position, fingerprint string) ([]int64, error) {
	out, err := pg.Collect(ctx, db, pgx.RowTo[int64], `SELECT f.from_offset FROM (
			SELECT from_offset, name, records, bytes FROM kappactl.archive_file
			WHERE topic_id = @topic_id::uuid AND partition = @partition ORDER BY from_offset DESC LIMIT @look) f
		WHERE f.name <> '' AND f.records > 0 AND f.bytes >= @least AND NOT EXISTS (SELECT FROM kappactl.archive_typed t
			WHERE t.topic_id = @topic_id::uuid AND t.partition = @partition AND t.from_offset = f.from_offset AND t.fingerprint = @fingerprint)
		ORDER BY f.from_offset LIMIT @files`, pgx.NamedArgs{
		"topic_id": p.TopicID.String(), "partition": p.Partition, "least": p.RollSize / 4, "fingerprint": fingerprint,
		"look": keptLook, "files": keptFiles,
	})
	if err != nil {
		return nil, fmt.Errorf("look for archive files without typed columns: %w", err)
	}
	return out, nil
}
