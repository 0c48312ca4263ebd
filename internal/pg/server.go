package pg

import (
	"context"
	"fmt"
)

// oldestServer is the first PostgreSQL with NULLS NOT DISTINCT, as server_version_num.
const oldestServer = 150000

// ServerError reports a server or a database that is unsuitable, whatever the role's rights are.
type ServerError struct{ Cause, Cure string }

func (e *ServerError) Error() string { return e.Cause }

// CheckServer returns a *ServerError if the server is too old or the database is not in UTF8. No other encoding has
// every character of a record, and those that accept any byte do not compare and cut texts by character.
func CheckServer(ctx context.Context, p *Pool) error {
	var number int
	var version, encoding, database string
	err := p.QueryRow(ctx, `SELECT current_setting('server_version_num')::integer, current_setting('server_version'),
		current_setting('server_encoding'),
		current_database()::text`).Scan(&number, &version, &encoding, &database)
	if err != nil {
		return fmt.Errorf("check the server: %w", err)
	}
	return JudgeServer(number, version, encoding, database)
}

// JudgeServer is CheckServer for given values: server_version_num, server_version, server_encoding and the database.
func JudgeServer(number int, version, encoding, database string) error {
	switch {
	case number < oldestServer:
		return &ServerError{
			fmt.Sprintf("PostgreSQL %s is too old: version tables need 15 or later", version),
			"upgrade PostgreSQL to 15 or later",
		}
	case encoding != "UTF8":
		return &ServerError{
			fmt.Sprintf("database %s has encoding %s, which cannot store every text: UTF8 is required", database, encoding),
			"use another database: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0",
		}
	}
	return nil
}
