package mergecheck

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// checkQuery is the SQL of one check as PostgreSQL receives it: the text of the job file between the SQL that encloses
// it.
type checkQuery struct {
	path                 string // path of the text in the job file
	before, text, behind string
}

// query returns the complete SQL statement. It reads the views candidate, live and previous.
func (a checkQuery) query() string { return a.before + a.text + a.behind }

// refusedChecks returns a problem for each check whose SQL PostgreSQL can never run over this job's columns, whatever
// the rows: invalid syntax, an unknown column or function, or a result that is not boolean. It only prepares the
// statements. Errors that depend on the caller's rights or on another version's columns are left to the agent.
func (b *Bench) refusedChecks(ctx context.Context) (out job.Problems, err error) {
	if len(b.run.spec.Checks) == 0 {
		return nil, nil
	}
	tx, err := b.tx.Raw().Begin(ctx) // a savepoint: the tables below the views are written again later
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tx.Rollback(ctx)) }()
	for _, name := range []string{"candidate", "live", "previous"} {
		if _, err := tx.Exec(ctx, fmt.Sprintf("CREATE TEMPORARY VIEW %s AS\n%s", name,
			b.deps.Views.Select(b.version))); err != nil {
			return nil, fmt.Errorf("make the views that checks read: %w", err)
		}
	}
	for i, k := range b.run.spec.Checks {
		a := checkQuery{path: fmt.Sprintf("checks[%d].sql", i), text: k.SQL}
		switch {
		case k.Diff != nil && k.Diff.Where == "":
			continue
		case k.Diff != nil:
			a = checkQuery{fmt.Sprintf("checks[%d].diff.where", i), "SELECT true FROM candidate WHERE (", k.Diff.Where, "\n)"}
		}
		p, err := b.refused(ctx, tx, a)
		if err != nil {
			return nil, fmt.Errorf("prepare check %q: %w", k.Name, err)
		}
		if p != nil {
			out = append(out, *p)
		}
	}
	return out, nil
}

// refused returns the problem of one text, or nil if there is none or it depends on the role or the version.
func (b *Bench) refused(ctx context.Context, tx pgx.Tx, a checkQuery) (*job.Problem, error) {
	fields, err := described(ctx, tx, a.query())
	var server *pgconn.PgError
	switch {
	case err == nil && (len(fields) != 1 || fields[0].DataTypeOID != pgtype.BoolOID):
		wrong := b.run.spec.Problem(a.path, job.PostgreSQL, "it does not return a single boolean",
			"write one query that returns true, such as SELECT count(*) > 0 FROM candidate")
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
	wrong := b.run.spec.ProblemAt(a.path, at, job.PostgreSQL, pg.Said(server, b.version.Layout.ViewNames()...),
		"correct the SQL; checks are PostgreSQL's dialect, over the columns of the view")
	return &wrong, nil
}

// described returns the result columns of a query without running it. The transaction remains usable after an error.
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

// certain reports whether an error with this SQLSTATE occurs for every role and every version that the text may run
// over.
func (a checkQuery) certain(code string) bool {
	switch {
	case code == pgerrcode.SyntaxError:
		return true
	case job.Names(a.text, "live"), job.Names(a.text, "previous"): // the columns of these versions may differ
		return false
	case code == pgerrcode.InsufficientPrivilege, code == pgerrcode.UndefinedTable, code == pgerrcode.UndefinedObject: // another role or search_path may succeed
		return false
	}
	return pgerrcode.IsSyntaxErrororAccessRuleViolation(code)
}

// undefinedFunction is the SQLSTATE of a function or operator that does not exist.
const undefinedFunction = pgerrcode.UndefinedFunction

// word matches a function name or an operator at the start of a text.
var word = regexp.MustCompile("^(?:[\\pL\\pN_$]+|[-+*/<>=~!@#%^&|`?]+)")

// elsewhere reports whether some schema has a function or operator of the name at byte offset at. The agents'
// search_path may find it even though ours does not.
func (a checkQuery) elsewhere(ctx context.Context, tx pgx.Tx, at int) (there bool, err error) {
	if at < 0 {
		return true, nil
	}
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_catalog.pg_proc WHERE proname = lower($1) AND pronamespace <> 'pg_catalog'::regnamespace)
			OR EXISTS (SELECT FROM pg_catalog.pg_operator WHERE oprname = $1 AND oprnamespace <> 'pg_catalog'::regnamespace)`,
		word.FindString(a.text[at:])).Scan(&there)
	return there, err
}

// offset converts a position of PostgreSQL (in characters from 1; 0 if unknown) into a byte offset in the text of the
// job file, or -1 if it lies outside that text.
func (a checkQuery) offset(position int) int {
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
