package serving

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
	case "42501":
		return &job.Refusal{
			Code: job.ExitUnreachable, Err: err,
			Cause: "missing right: " + server.Message,
			Next:  "grant it to the role in the agents' connection string; kappactl init --print lists all rights",
		}
	case "2BP01":
		return &job.Refusal{
			Code: job.ExitConflict, Err: err,
			Cause: fmt.Sprintf("%s: %s", server.Message, strings.ReplaceAll(server.Detail, "\n", "; ")),
			Next:  "drop what depends on it, or make it read the serving view instead; kappactl never drops with CASCADE",
		}
	case "42704":
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

// badSQL says that a text of the job file is not right for PostgreSQL. Errors from elsewhere are returned as they are.
func badSQL(err error) error {
	var server *pgconn.PgError
	if !errors.As(err, &server) || !strings.HasPrefix(server.Code, "42") || server.Code == "42501" {
		return refused(err)
	}
	cause := "serve.columns or serve.where: PostgreSQL SQL: " + server.Message
	if server.Hint != "" {
		cause += " (" + server.Hint + ")"
	}
	return &job.Refusal{Code: job.ExitUsage, Err: err, Cause: cause, Next: "correct the text in the job file and deploy again"}
}

func notOurs(cause, next string) *job.Refusal {
	return &job.Refusal{Code: job.ExitConflict, Cause: cause, Next: next}
}
