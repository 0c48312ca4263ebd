package law

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/kappactl/kappactl/internal/job"
)

// asked is the SQL of one check as PostgreSQL gets it: the text of the file within a query.
type asked struct {
	path                 string // of the text in the job file
	before, text, behind string
}

// query is what is asked, over the views candidate, live and previous.
func (a asked) query() string { return a.before + a.text + a.behind }

// refusedChecks are the checks whose SQL PostgreSQL cannot run over this job's columns, whatever the rows: wrong syntax, a column
// or function that is not there, a value that is no boolean. Nothing is run. What depends on the rights of who asks, or on another
// version's columns, is left to the agent.
func (b *Bench) refusedChecks(ctx context.Context) (out job.Problems, err error) {
	if len(b.run.spec.Checks) == 0 {
		return nil, nil
	}
	tx, err := b.tx.Raw().Begin(ctx) // a savepoint: the tables below the views are still to be written anew
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tx.Rollback(ctx)) }()
	for _, name := range []string{"candidate", "live", "previous"} {
		if _, err := tx.Exec(ctx, fmt.Sprintf("CREATE TEMPORARY VIEW %s AS\n%s", name, b.deps.Views.Select(b.ref, tempSchema, b.layout))); err != nil {
			return nil, fmt.Errorf("make the views that checks read: %w", err)
		}
	}
	for i, k := range b.run.spec.Checks {
		a := asked{path: fmt.Sprintf("checks[%d].sql", i), text: k.SQL}
		switch {
		case k.Diff != nil && k.Diff.Where == "":
			continue
		case k.Diff != nil:
			a = asked{fmt.Sprintf("checks[%d].diff.where", i), "SELECT true FROM candidate WHERE (", k.Diff.Where, "\n)"}
		}
		p, err := b.refused(ctx, tx, a)
		if err != nil {
			return nil, fmt.Errorf("look at check %q: %w", k.Name, err)
		}
		if p != nil {
			out = append(out, *p)
		}
	}
	return out, nil
}

// refused says what is wrong with one text; nil when nothing is, or nothing can be told.
func (b *Bench) refused(ctx context.Context, tx pgx.Tx, a asked) (*job.Problem, error) {
	fields, err := described(ctx, tx, a.query())
	var server *pgconn.PgError
	switch {
	case err == nil && (len(fields) != 1 || fields[0].DataTypeOID != pgtype.BoolOID):
		wrong := b.run.spec.Problem(a.path, job.PostgreSQL, "it does not return one boolean", "write one query that returns true, such as SELECT count(*) > 0 FROM candidate")
		return &wrong, nil
	case err == nil:
		return nil, nil
	case !errors.As(err, &server):
		return nil, err
	case !a.certain(server.Code):
		return nil, nil
	}
	at := a.offset(int(server.Position))
	if server.Code == undefinedFunction {
		if elsewhere, err := a.elsewhere(ctx, tx, at); elsewhere || err != nil {
			return nil, err
		}
	}
	cause := server.Message
	if server.Hint != "" {
		cause += " (" + server.Hint + ")"
	}
	wrong := b.run.spec.ProblemAt(a.path, at, job.PostgreSQL, cause, "correct the SQL; checks are PostgreSQL's dialect, over the columns of the view")
	return &wrong, nil
}

// described are the columns of a query that is not run. The transaction goes on after an error.
func described(ctx context.Context, outer pgx.Tx, sql string) (fields []pgconn.FieldDescription, err error) {
	tx, err := outer.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tx.Rollback(ctx)) }()
	d, err := tx.Conn().Prepare(ctx, "", sql)
	if err != nil {
		return nil, err
	}
	return d.Fields, nil
}

// certain says that an error is one for every role and every version that this text may be asked over.
func (a asked) certain(code string) bool {
	switch {
	case code == "42601": // syntax_error
		return true
	case job.Names(a.text, "live"), job.Names(a.text, "previous"): // their columns may be others
		return false
	case code == "42501", code == "42P01", code == "42704": // insufficient_privilege; undefined_table and undefined_object, which another search_path may find
		return false
	}
	return strings.HasPrefix(code, "42")
}

// undefinedFunction is PostgreSQL's code of a function or operator that is not there.
const undefinedFunction = "42883"

// word is a function's name, or an operator, at the start of a text.
var word = regexp.MustCompile("^(?:[\\pL\\pN_$]+|[-+*/<>=~!@#%^&|`?]+)")

// elsewhere says that a function or operator of the name at an offset is in some schema, where the role of agents may look by its
// search_path and ours does not.
func (a asked) elsewhere(ctx context.Context, tx pgx.Tx, at int) (there bool, err error) {
	if at < 0 {
		return true, nil
	}
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_catalog.pg_proc WHERE proname = lower($1) AND pronamespace <> 'pg_catalog'::regnamespace)
			OR EXISTS (SELECT FROM pg_catalog.pg_operator WHERE oprname = $1 AND oprnamespace <> 'pg_catalog'::regnamespace)`, word.FindString(a.text[at:])).Scan(&there)
	return there, err
}

// offset is where a position of PostgreSQL, in characters from 1 and 0 when unknown, is in the text of the file, in bytes; -1 when
// it is not in it.
func (a asked) offset(position int) int {
	runes := []rune(a.query())
	if position < 1 || position > len(runes) {
		return -1
	}
	at := len(string(runes[:position-1])) - len(a.before)
	if at < 0 || at > len(a.text) {
		return -1
	}
	return at
}
