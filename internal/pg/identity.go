package pg

import (
	"context"
	"fmt"
)

const (
	sqlMaySeeSystem = `SELECT has_function_privilege('pg_control_system()', 'EXECUTE')`
	// The identity is computed and not stored, so that a copy of the tables has another one.
	sqlIdentity = `
SELECT left(lpad(to_hex(hashtextextended(concat_ws('/', %s, d.oid, 'kappactl.schema_info'::regclass::oid), 0)), 16,
'0'), 8)
  FROM pg_database d WHERE d.datname = current_database()`
	systemIdentifier = `(SELECT system_identifier FROM pg_control_system())`
)

// Identity returns eight hexadecimal digits that distinguish this control schema from a copy restored from a dump.
// Names outside the database, such as those of consumer groups, contain it. A standby has the same identity as its
// primary, also after promotion.
func Identity(ctx context.Context, db DB) (string, error) {
	var may bool
	if err := db.QueryRow(ctx, sqlMaySeeSystem).Scan(&may); err != nil {
		return "", fmt.Errorf("identify the control schema: %w", err)
	}
	system := `''`
	if may {
		system = systemIdentifier
	}
	var out string
	if err := db.QueryRow(ctx, fmt.Sprintf(sqlIdentity, system)).Scan(&out); err != nil {
		return "", fmt.Errorf("identify the control schema: %w", err)
	}
	return out, nil
}
