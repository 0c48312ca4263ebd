package pg

import (
	"context"
	"fmt"

	"github.com/jackc/pgerrcode"
)

const sqlDataFolder = `
SELECT coalesce(nullif((SELECT pg_tablespace_location(d.dattablespace) FROM pg_database d
WHERE d.datname = current_database()), ''),
                current_setting('data_directory')) AS folder,
       coalesce(host(inet_server_addr()) IN ('127.0.0.1', '::1'), true) AS here`

// DataFolder returns the folder in which the server creates new tables of this database, if the server runs on this
// machine. Otherwise why explains what prevents it: another machine, or a role without pg_read_all_settings.
func DataFolder(ctx context.Context, p *Pool) (folder, why string, err error) {
	var here bool
	err = p.QueryRow(ctx, sqlDataFolder).Scan(&folder, &here)
	switch {
	case Code(err) == pgerrcode.InsufficientPrivilege:
		return "", "the role may not read data_directory (pg_read_all_settings)", nil
	case err != nil:
		return "", "", fmt.Errorf("read where the server keeps its data: %w", err)
	case !here:
		return "", "PostgreSQL runs on another machine", nil
	}
	return folder, "", nil
}
