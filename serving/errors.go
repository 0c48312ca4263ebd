package serving

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

type rights struct {
	Role      string
	Present   bool
	MayCreate bool
}

// mayCreate refuses when we cannot make relations in schema, naming the right that is missing.
func mayCreate(ctx context.Context, db queryer, schema string) (role string, err error) {
	rows, err := db.Query(ctx, selectRights, pgx.NamedArgs{"schema": schema})
	if err != nil {
		return "", fmt.Errorf("read rights on schema %s: %w", schema, err)
	}
	r, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[rights])
	switch {
	case err != nil:
		return "", fmt.Errorf("read rights on schema %s: %w", schema, err)
	case !r.Present:
		return "", &job.Refusal{
			Code:  job.ExitUsage,
			Cause: fmt.Sprintf("schema %s does not exist in this database", pg.Ident(schema)),
			Next:  fmt.Sprintf("CREATE SCHEMA %s AUTHORIZATION %s", pg.Ident(schema), pg.Ident(r.Role)),
		}
	case !r.MayCreate:
		return "", &job.Refusal{
			Code:  job.ExitUnreachable,
			Cause: fmt.Sprintf("role %s lacks the CREATE right on schema %s", pg.Ident(r.Role), pg.Ident(schema)),
			Next:  fmt.Sprintf("GRANT USAGE, CREATE ON SCHEMA %s TO %s", pg.Ident(schema), pg.Ident(r.Role)),
		}
	}
	return r.Role, nil
}

// refused turns errors of PostgreSQL that a person has to act on into refusals; others are returned as they are.
func refused(err error) error {
	var server *pgconn.PgError
	if !errors.As(err, &server) {
		return err
	}
	switch server.Code {
	case pgerrcode.InsufficientPrivilege:
		return &job.Refusal{
			Code: job.ExitUnreachable, Err: err,
			Cause: "missing right: " + server.Message,
			Next:  "grant it to the role in the agents' connection string; kappactl init --print lists all rights",
		}
	case pgerrcode.DependentObjectsStillExist:
		return &job.Refusal{
			Code: job.ExitConflict, Err: err,
			Cause: fmt.Sprintf("%s: %s", server.Message, strings.ReplaceAll(server.Detail, "\n", "; ")),
			Next:  "drop what depends on it, or make it read the serving view instead; kappactl never drops with CASCADE",
		}
	case pgerrcode.UndefinedObject:
		if strings.HasPrefix(server.Message, "role ") {
			return &job.Refusal{
				Code: job.ExitUsage, Err: err,
				Cause: "serve.grant: " + server.Message,
				Next:  "create the role, or take it out of serve.grant",
			}
		}
	}
	return err
}

// badSQL is the refusal of a text of the job file that PostgreSQL does not take. Errors from elsewhere are returned as
// they are.
func badSQL(err error, l job.Layout) error {
	var server *pgconn.PgError
	if !errors.As(err, &server) || !ofText(server.Code) {
		return refused(err)
	}
	cause := "serve.columns or serve.where: PostgreSQL SQL: " + pg.Said(server, l.ViewNames()...)
	return &job.Refusal{
		Code: job.ExitUsage, Err: err, Cause: cause,
		Next: "correct the text in the job file and deploy again",
	}
}

// ofText reports whether an error that came while a text was planned is one of the text: its syntax and its names,
// values that cannot be converted, what PostgreSQL does not support there, and what its functions raise. Others are
// about rights or the server.
func ofText(code string) bool {
	switch {
	case code == pgerrcode.InsufficientPrivilege:
		return false
	case pgerrcode.IsSyntaxErrororAccessRuleViolation(code), pgerrcode.IsDataException(code),
		pgerrcode.IsFeatureNotSupported(code),
		pgerrcode.IsCardinalityViolation(code), pgerrcode.IsProgramLimitExceeded(code), pgerrcode.IsPLpgSQLError(code),
		pgerrcode.IsExternalRoutineException(code), pgerrcode.IsSQLRoutineException(code):
		return true
	}
	return false
}

func notOurs(cause, next string) *job.Refusal {
	return &job.Refusal{Code: job.ExitConflict, Cause: cause, Next: next}
}
