package pg

import (
	"context"

	"github.com/jackc/pgx/v5/stdlib"
)

// MigrateText applies one more migration with the given statement, as Migrate applies those of this binary.
func MigrateText(ctx context.Context, p *Pool, sql string) error {
	db := stdlib.OpenDBFromPool(p.pool)
	defer db.Close()
	return p.schema.up(ctx, db, map[string]string{"99999_probe.sql": upMark + sql + ";\n"})
}
