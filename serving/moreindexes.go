package serving

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// moreIndex is the name of one of serve.indexes: it follows from the columns, so that the same list finds the same
// index.
func moreIndex(table string, columns []string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", columns))
	return shortened(table, "_by_"+hex.EncodeToString(sum[:4]))
}

type madeIndex struct {
	Name    string
	IsValid bool
	Columns []string
}

// moreIndexes makes the indexes that the layout lists and drops those of ours that it does not list: ours are those
// that have the name of their columns, whatever else people made on the table. While the table is in use that is done
// CONCURRENTLY; one that was left unfinished is made again.
func moreIndexes(ctx context.Context, db pg.DB, t stored, inUse bool) error {
	concurrently := ""
	if inUse {
		concurrently = "CONCURRENTLY "
	}
	rows, err := db.Query(ctx, selectMoreIndexes, pgx.NamedArgs{"schema": t.Schema, "table": t.name})
	if err != nil {
		return fmt.Errorf("look for the indexes of %s: %w", t.name, err)
	}
	have, err := pgx.CollectRows(rows, pgx.RowToStructByName[madeIndex])
	if err != nil {
		return fmt.Errorf("look for the indexes of %s: %w", t.name, err)
	}
	wanted := map[string][]string{}
	for _, columns := range t.Layout.Indexes {
		wanted[moreIndex(t.name, columns)] = columns
	}
	made := map[string]bool{}
	for _, i := range have {
		if i.Name != moreIndex(t.name, i.Columns) {
			continue
		}
		if _, keep := wanted[i.Name]; keep && i.IsValid {
			made[i.Name] = true
			continue
		}
		if _, err := db.Exec(pg.Long(ctx), "DROP INDEX "+concurrently+"IF EXISTS "+qualified(t.Schema, i.Name)); err != nil {
			return fmt.Errorf("drop index %s: %w", i.Name, refused(err))
		}
	}
	for _, columns := range t.Layout.Indexes {
		name := moreIndex(t.name, columns)
		if made[name] {
			continue
		}
		made[name] = true
		quoted := make([]string, len(columns))
		for i, c := range columns {
			quoted[i] = ident(c)
		}
		sql := fmt.Sprintf("CREATE INDEX %sIF NOT EXISTS %s ON %s (%s)", concurrently, ident(name), t.relation(),
			strings.Join(quoted, ", "))
		if _, err := db.Exec(pg.Long(ctx), sql); err != nil {
			return fmt.Errorf("index %s by %s: %w", t.name, strings.Join(columns, ", "), badIndex(err))
		}
	}
	return nil
}

// badIndex is the refusal of serve.indexes that PostgreSQL cannot create.
func badIndex(err error) error {
	switch pg.Code(err) {
	case pgerrcode.UndefinedObject, pgerrcode.UndefinedColumn, pgerrcode.ProgramLimitExceeded, pgerrcode.TooManyColumns:
		return &job.Refusal{
			Code: job.ExitUsage, Err: err, Cause: "serve.indexes: PostgreSQL: " + messageOf(err),
			Next: "take the column out of serve.indexes and deploy again",
		}
	}
	return refused(err)
}

func messageOf(err error) string {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return server.Message
	}
	return err.Error()
}
