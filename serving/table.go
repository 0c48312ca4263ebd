package serving

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// fillfactor leaves room on each page for the next state of a row, so that updates stay on it.
const fillfactor = 75

// Create makes the version's table, without an index, and proves that the SELECT over it stands and fits the contract of
// the job's readers. A table of that name that this version did not make is refused.
func (s *Store) Create(ctx context.Context, db pg.DB, ref job.Ref, schema string, l job.Layout) error {
	if err := checkLayout(ref, schema, l); err != nil {
		return err
	}
	present, err := ownTable(ctx, db, ref, schema, l)
	if err != nil {
		return err
	}
	if !present {
		if _, err := mayCreate(ctx, db, schema); err != nil {
			return err
		}
		if err := createTable(ctx, db, ref, schema, l); err != nil {
			return err
		}
	}
	return s.prove(ctx, db, ref, schema, l)
}

func createTable(ctx context.Context, db pg.DB, ref job.Ref, schema string, l job.Layout) error {
	names, types := l.StagedColumns()
	columns := make([]string, len(names))
	for i := range names {
		columns[i] = ident(names[i]) + " " + types[i]
	}
	columns[0] += " NOT NULL" // the lane
	if l.Shape != job.Rollup {
		for i := range l.Keys {
			columns[1+i] += " NOT NULL"
		}
	}
	table := qualified(schema, ref.Table())
	// One text without parameters is one transaction: the table is never there without its comment.
	_, err := db.Exec(ctx, fmt.Sprintf("CREATE TABLE %s (%s) WITH (fillfactor = %d); COMMENT ON TABLE %s IS %s",
		table, strings.Join(columns, ", "), fillfactor, table, literal(tableComment(ref, l))))
	if code := pg.Code(err); code == "42P07" || code == "23505" {
		// Somebody made it in between: fine when it was another agent at this very step.
		if present, again := ownTable(ctx, db, ref, schema, l); present && again == nil {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("create table %s: %w", table, refused(err))
	}
	return nil
}

// tableComment says what the table is, and with which columns it was made.
func tableComment(ref job.Ref, l job.Layout) string {
	names, types := l.StagedColumns()
	sum := sha256.New()
	for i := range names {
		_, _ = fmt.Fprintf(sum, "%q %q\n", names[i], types[i]) // a hash takes everything
	}
	return fmt.Sprintf("%s [columns %s]", commentOf(ref), hex.EncodeToString(sum.Sum(nil)[:6]))
}

func commentOf(ref job.Ref) string {
	return fmt.Sprintf("kappactl: partial states of version %s of job %s. Written by agents; read the serving view instead.", ref.Number, ref.Job)
}

type tableFacts struct {
	Kind    string
	Comment string
	Columns []string
}

func readTable(ctx context.Context, db pg.DB, ref job.Ref, schema string) (*tableFacts, error) {
	rows, err := db.Query(ctx, selectTable, pgx.NamedArgs{"schema": schema, "name": ref.Table()})
	if err != nil {
		return nil, fmt.Errorf("look for table %s: %w", qualified(schema, ref.Table()), err)
	}
	t, err := pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByName[tableFacts])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for table %s: %w", qualified(schema, ref.Table()), err)
	}
	return t, nil
}

// ownTable says whether the version's table is there; what else stands at its name is refused.
func ownTable(ctx context.Context, db pg.DB, ref job.Ref, schema string, l job.Layout) (bool, error) {
	t, err := readTable(ctx, db, ref, schema)
	if err != nil || t == nil {
		return false, err
	}
	names, _ := l.StagedColumns()
	if t.Kind == "r" && t.Comment == tableComment(ref, l) && containsAll(t.Columns, names) {
		return true, nil
	}
	return false, notOurs(
		fmt.Sprintf("%s exists and was not made for %s: its comment or columns are not what kappactl writes", qualified(schema, ref.Table()), ref),
		"rename or drop that relation, or give the job another name")
}

// containsAll allows columns that people added.
func containsAll(have, want []string) bool {
	for _, w := range want {
		if !slices.Contains(have, w) {
			return false
		}
	}
	return true
}

func checkLayout(ref job.Ref, schema string, l job.Layout) error {
	if len(l.Keys)+1 > maxIndexColumns {
		return &job.Refusal{
			Code:  job.ExitUsage,
			Cause: fmt.Sprintf("the key has %d columns; PostgreSQL's unique index takes %d beside the lane", len(l.Keys), maxIndexColumns-1),
			Next:  "use fewer columns in GROUP BY or serve.key",
		}
	}
	names, _ := l.StagedColumns()
	for _, c := range l.View {
		names = append(names, c.Name)
	}
	return errors.Join(checkNames("schema", schema), checkNames("table", ref.Table()), checkNames("column", names...))
}

// Analyze gives the planner statistics of the filled table.
func (*Store) Analyze(ctx context.Context, db pg.DB, ref job.Ref, schema string) error {
	table := qualified(schema, ref.Table())
	if _, err := db.Exec(pg.Long(ctx), "ANALYZE "+table); err != nil {
		return fmt.Errorf("analyze %s: %w", table, refused(err))
	}
	return nil
}

// Drop removes the version's table, never what depends on it: that is a refusal which lists it.
func (s *Store) Drop(ctx context.Context, db pg.DB, ref job.Ref, schema string) error {
	table := qualified(schema, ref.Table())
	t, err := readTable(ctx, db, ref, schema)
	if err != nil || t == nil {
		return err
	}
	if t.Kind != "r" || !strings.HasPrefix(t.Comment, commentOf(ref)) {
		return notOurs(fmt.Sprintf("%s was not made by kappactl for %s and is not dropped", table, ref), "rename or drop that relation yourself")
	}
	// One text without parameters is one transaction, so the timeout ends with it.
	_, err = db.Exec(pg.Long(ctx), fmt.Sprintf("SET LOCAL lock_timeout = %d; DROP TABLE IF EXISTS %s", s.config.DropLockTimeout.Milliseconds(), table))
	if err != nil {
		return fmt.Errorf("drop table %s: %w", table, refused(err))
	}
	return nil
}

// Dependants lists the relations and functions that read the version's table, without the serving view.
func (*Store) Dependants(ctx context.Context, db pg.DB, ref job.Ref, view job.ViewName) ([]string, error) {
	rows, err := db.Query(ctx, selectDependants, pgx.NamedArgs{"schema": view.Schema, "table": ref.Table(), "view": view.Name})
	if err != nil {
		return nil, fmt.Errorf("dependants of %s: %w", ref, err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("dependants of %s: %w", ref, err)
	}
	return names, nil
}
