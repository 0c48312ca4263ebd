package typed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Store reads and writes archive_typed.
type Store struct{}

// find returns the typed file of an archive file as a row of a file; ok is false when there is none.
func (Store) find(ctx context.Context, db pg.DB, of archive.FileRow, fingerprint string) (row archive.FileRow, ok bool,
	err error,
) {
	row = of
	err = db.QueryRow(ctx, `SELECT name, bytes, sha256 FROM kappactl.archive_typed
		WHERE topic_id = @topic_id::uuid AND partition = @partition AND from_offset = @from AND fingerprint = @fingerprint`, key(of, fingerprint)).
		Scan(&row.Name, &row.Bytes, &row.SHA256)
	if errors.Is(err, pgx.ErrNoRows) {
		return row, false, nil
	}
	if err != nil {
		return row, false, fmt.Errorf("look for typed columns of %s: %w", of.Name, err)
	}
	return row, true, nil
}

func key(of archive.FileRow, fingerprint string) pgx.NamedArgs {
	return pgx.NamedArgs{
		"topic_id": of.TopicID.String(), "partition": of.ID, "from": of.From, "fingerprint": fingerprint,
		"of": of.Name,
	}
}

// Source is the source of a version, or of the newest one of a job when number is nil; nil: there is no such version.
func (Store) Source(ctx context.Context, db pg.DB, name job.Name, number *job.Number) (*job.Source, error) {
	var text []byte
	err := db.QueryRow(ctx, `SELECT spec -> 'source' FROM kappactl.version
		WHERE job = @job AND number > 0 AND ended_at IS NULL AND number = coalesce(@number, number) ORDER BY number DESC LIMIT 1`,
		pgx.NamedArgs{"job": name, "number": number}).Scan(&text)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // there is none
	}
	var src job.Source
	if err == nil {
		err = json.Unmarshal(text, &src)
	}
	if err != nil {
		return nil, fmt.Errorf("read which columns %s declares: %w", name, err)
	}
	return &src, nil
}

// Publish lists a typed file that is stored. False: its archive file was merged or pruned meanwhile, or another typed
// file of it is listed.
func (Store) Publish(ctx context.Context, db pg.DB, m Made) (bool, error) {
	args := key(m.Of, m.Fingerprint)
	args["name"], args["bytes"], args["sha256"] = m.Name(), m.Bytes, m.SHA256
	tag, err := db.Exec(ctx, `INSERT INTO kappactl.archive_typed (topic_id, partition, from_offset, fingerprint, name, bytes, sha256)
		SELECT topic_id, partition, from_offset, @fingerprint, @name, @bytes, @sha256 FROM kappactl.archive_file
		WHERE topic_id = @topic_id::uuid AND partition = @partition AND from_offset = @from AND name = @of FOR SHARE
		ON CONFLICT DO NOTHING`, args)
	if err != nil {
		return false, fmt.Errorf("publish typed columns of %s: %w", m.Of.Name, err)
	}
	return tag.RowsAffected() == 1, nil
}

// Unused removes the typed files from the manifest whose fingerprint is that of no version, and returns them: they are
// to be deleted.
func (s Store) Unused(ctx context.Context, db pg.DB) ([]archive.Unlisted, error) {
	texts, err := pg.Collect(ctx, db, pgx.RowTo[[]byte],
		`SELECT DISTINCT spec -> 'source' FROM kappactl.version WHERE ended_at IS NULL AND number > 0`)
	if err != nil {
		return nil, fmt.Errorf("read which columns versions declare: %w", err)
	}
	used := make([]string, len(texts))
	for i, text := range texts {
		var src job.Source
		if err := json.Unmarshal(text, &src); err != nil {
			return nil, fmt.Errorf("read which columns versions declare: %w", err)
		}
		used[i] = Fingerprint(src)
	}
	_, err = db.Exec(ctx, `UPDATE kappactl.archive SET typed = ARRAY(SELECT f FROM unnest(typed) f WHERE f = ANY (@used))
		WHERE NOT typed <@ @used::text[]`, pgx.NamedArgs{"used": used})
	if err != nil {
		return nil, fmt.Errorf("keep no typed columns that no version has: %w", err)
	}
	out, err := pg.Collect(ctx, db, pgx.RowToStructByPos[archive.Unlisted], `DELETE FROM kappactl.archive_typed t
		USING kappactl.archive_file f WHERE (f.topic_id, f.partition, f.from_offset) = (t.topic_id, t.partition, t.from_offset)
		  AND t.fingerprint <> ALL (@used) RETURNING f.location, t.name`, pgx.NamedArgs{"used": used})
	if err != nil {
		return nil, fmt.Errorf("remove typed columns that no version has: %w", err)
	}
	return out, nil
}
