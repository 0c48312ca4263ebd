package checks

import (
	"context"
	"fmt"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
)

// runSQL runs a check's query, which must return one row with one boolean. Otherwise it returns a noAnswer.
func runSQL(ctx context.Context, tx pgx.Tx, text string) (Outcome, reason.Reason, error) {
	none := reason.Reason{}
	if err := job.ReadsOnly(text); err != nil {
		return "", none, err
	}
	if err := oneBoolean(ctx, tx, text); err != nil {
		return "", none, err
	}
	counted, err := countedAnswer(ctx, tx, text)
	if err != nil {
		return "", none, err
	}
	rows, err := fenced(tx)(ctx, counted, "n bigint, answer boolean")
	if err != nil {
		return "", none, err
	}
	var n int64
	var answer *bool
	if _, err := pgx.ForEachRow(rows, []any{&n, &answer}, func() error { return nil }); err != nil {
		return "", none, err
	}
	switch {
	case n != 1:
		return "", none, noAnswer{reason.CheckRows(n)}
	case answer == nil:
		return "", none, noAnswer{reason.CheckNull()}
	case !*answer:
		return Fail, reason.CheckFalse(), nil
	}
	return Pass, none, nil
}

// oneBoolean refuses a query whose result is not one boolean column. PostgreSQL describes a domain as its base type.
func oneBoolean(ctx context.Context, tx pgx.Tx, text string) error {
	fields, err := fieldsOf(ctx, tx, text)
	if err != nil {
		return err
	}
	if len(fields) != 1 {
		return noAnswer{reason.CheckColumns(len(fields))}
	}
	oid := fields[0].DataTypeOID
	if oid == pgtype.BoolOID {
		return nil
	}
	name := fmt.Sprintf("type %d", oid)
	if t, ok := tx.Conn().TypeMap().TypeForOID(oid); ok {
		name = t.Name
	}
	return noAnswer{reason.CheckType(name)}
}

// countedAnswer returns a query for the number of rows of a check's query and the boolean of one of them. PostgreSQL
// does not have to store the rows, and the query accepts a domain over boolean. text has been parsed by PostgreSQL, so
// it cannot close the parentheses.
func countedAnswer(ctx context.Context, tx pgx.Tx, text string) (string, error) {
	counted := fmt.Sprintf("SELECT count(*), bool_and(q.answer) FROM (%s\n) AS q (answer)", job.Unended(text))
	_, err := fieldsOf(ctx, tx, counted)
	if pg.Code(err) == pgerrcode.FeatureNotSupported { // a WITH that writes is refused only inside parentheses
		return "", noAnswer{reason.CheckWritesInWith()}
	}
	return counted, err
}

// fieldsOf returns the columns of a query, which is prepared but not run.
func fieldsOf(ctx context.Context, tx pgx.Tx, query string) ([]pgconn.FieldDescription, error) {
	described, err := tx.Conn().Prepare(ctx, "", query)
	if err != nil {
		return nil, err
	}
	return described.Fields, nil
}
