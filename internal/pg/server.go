package pg

import (
	"context"
	"fmt"
)

// oldestServer is the first PostgreSQL with NULLS NOT DISTINCT, as server_version_num has it.
const oldestServer = 150000

// ServerError is a server or a database that cannot hold what is written, whatever the role may do.
type ServerError struct{ Cause, Cure string }

func (e *ServerError) Error() string { return e.Cause }

// CheckServer says with a ServerError that the server is too old, or that the database is not in UTF8: there is no other encoding
// that has every character of a record, and those that take any byte do not compare and cut texts by characters.
func CheckServer(ctx context.Context, p *Pool) error {
	var number int
	var version, encoding, database string
	err := p.QueryRow(ctx, `SELECT current_setting('server_version_num')::integer, current_setting('server_version'), current_setting('server_encoding'),
		current_database()::text`).Scan(&number, &version, &encoding, &database)
	if err != nil {
		return fmt.Errorf("look at the server: %w", err)
	}
	return JudgeServer(number, version, encoding, database)
}

// JudgeServer is CheckServer of what a server says of itself: server_version_num, server_version, server_encoding and the database.
func JudgeServer(number int, version, encoding, database string) error {
	switch {
	case number < oldestServer:
		return &ServerError{fmt.Sprintf("PostgreSQL %s is too old: version tables need 15 or later", version), "upgrade PostgreSQL to 15 or later"}
	case encoding != "UTF8":
		return &ServerError{
			fmt.Sprintf("database %s is in %s, which does not hold every text that a record may: UTF8 is needed", database, encoding),
			"use another database: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0",
		}
	}
	return nil
}
