package pg

import (
	"context"
	"fmt"

	"github.com/pressly/goose/v3/database"
)

// versions is goose's store of applied migrations for schemas of any name. goose's own store does not quote the table's
// name and looks for the table by parts of it.
type versions struct {
	database.Store
	table string // quoted
}

func newVersions(s schema) (versions, error) {
	table := Ident(string(s), versionTable)
	store, err := database.NewStore(database.DialectPostgres, table)
	if err != nil {
		return versions{}, fmt.Errorf("migrate: %w", err)
	}
	return versions{Store: store, table: table}, nil
}

// TableExists reports whether a table of this quoted name exists.
func (v versions) TableExists(ctx context.Context, db database.DBTxConn) (exists bool, err error) {
	err = db.QueryRowContext(ctx, `SELECT to_regclass($1) IS NOT NULL`, v.table).Scan(&exists)
	return exists, err
}
