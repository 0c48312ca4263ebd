package archive

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/pg"
)

// typedOf are the files with typed columns of a file, as rows of files. internal/typed lists them.
func (Store) typedOf(ctx context.Context, db pg.DB, f FileRow) ([]FileRow, error) {
	out, err := pg.Collect(ctx, db, func(row pgx.CollectableRow) (FileRow, error) {
		typed := f
		err := row.Scan(&typed.Name, &typed.Bytes, &typed.SHA256)
		return typed, err
	}, `SELECT name, bytes, sha256 FROM kappactl.archive_typed
		WHERE topic_id = @topic_id::uuid AND partition = @partition AND from_offset = @from`,
		pgx.NamedArgs{"topic_id": f.TopicID.String(), "partition": f.ID, "from": f.From})
	if err != nil {
		return nil, fmt.Errorf("list the typed columns of %s: %w", f.Name, err)
	}
	return out, nil
}

// verifyTyped reads the files with typed columns of a file, and hands what is wrong with them to found.
func (s Store) verifyTyped(ctx context.Context, db pg.DB, at *Locations, f FileRow,
	found func(file, cause string),
) error {
	typed, err := s.typedOf(ctx, db, f)
	if err != nil {
		return err
	}
	for _, t := range typed {
		l, err := at.Open(t.Location)
		if err == nil {
			err = Fetch(ctx, l, t, io.Discard)
		}
		var damaged *DamagedError
		switch {
		case errors.As(err, &damaged):
			found(shelved(t), "typed columns: "+damaged.Why)
		case Missing(err):
			found(shelved(t), "typed columns: the file is not there")
		case err != nil:
			return err
		}
	}
	return nil
}

// typedNames are the files with typed columns of a topic.
func (Store) typedNames(ctx context.Context, db pg.DB, a Archive) (map[string]bool, error) {
	found, err := pg.Collect(ctx, db, pgx.RowTo[string],
		`SELECT name FROM kappactl.archive_typed WHERE topic_id = @topic_id::uuid`,
		pgx.NamedArgs{"topic_id": a.TopicID.String()})
	if err != nil {
		return nil, fmt.Errorf("list the typed columns of the archive of %s: %w", a.Topic, err)
	}
	out := map[string]bool{}
	for _, name := range found {
		out[name] = true
	}
	return out, nil
}
