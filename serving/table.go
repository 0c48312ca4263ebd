package serving

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// fillfactor leaves room on each page for the next state of a row, so that updates stay on it.
const fillfactor = 75

// Create makes the version's table, without an index, and proves that the SELECT over it is valid and fits the contract
// of the job's readers. Of mode lambda it makes the batch table with generation 0 and the pointer to it as well. A
// relation of one of these names that this version did not make is refused.
func (s *Store) Create(ctx context.Context, db pg.DB, v job.Version) error {
	if err := checkLayout(v); err != nil {
		return err
	}
	present, err := ownTables(ctx, db, v)
	if err != nil {
		return err
	}
	if !present {
		if _, err := mayCreate(ctx, db, v.Schema); err != nil {
			return err
		}
		if err := createTables(ctx, db, v); err != nil {
			return err
		}
	}
	return s.prove(ctx, db, v)
}

func createTables(ctx context.Context, db pg.DB, v job.Version) error {
	steps := []string{tableDefinition(v), comment("TABLE", relation(v), tableComment(v))}
	if v.Layout.Lambda {
		steps = append(steps, layers(v)...)
	}
	// One text without parameters is one transaction: the tables are never there without their comments.
	_, err := db.Exec(ctx, strings.Join(steps, ";\n"))
	if code := pg.Code(err); code == pgerrcode.DuplicateTable || code == pgerrcode.UniqueViolation {
		// Somebody made them in between: fine when it was another agent at this very step.
		if present, again := ownTables(ctx, db, v); present && again == nil {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("create table %s: %w", relation(v), refused(err))
	}
	return nil
}

// tableDefinition is the DDL of the version's table. A table of mode lambda is not truncated by VACUUM, which would
// lock readers out: old epochs are deleted from it.
func tableDefinition(v job.Version) string {
	columns, options := storedColumns(v.Layout), fmt.Sprintf("fillfactor = %d", fillfactor)
	if v.Layout.Lambda {
		columns, options = append(columns, ident(job.EpochColumn)+" integer NOT NULL"), options+", vacuum_truncate = false"
	}
	return fmt.Sprintf("CREATE TABLE %s (%s) WITH (%s)", relation(v), strings.Join(columns, ", "), options)
}

// storedColumns define the columns of keys and states.
func storedColumns(l job.Layout) []string {
	names, types := l.StagedColumns()
	columns := make([]string, len(names))
	for i := range names {
		columns[i] = ident(names[i]) + " " + types[i]
		if l.Shape != job.Rollup && i < len(l.Keys) {
			columns[i] += " NOT NULL"
		}
	}
	return columns
}

func comment(kind, relation, text string) string {
	return fmt.Sprintf("COMMENT ON %s %s IS %s", kind, relation, literal(text))
}

// tableComment says what the version's table is, and with which columns it was made.
func tableComment(v job.Version) string {
	names, types := v.Layout.StagedColumns()
	sum := sha256.New()
	for i := range names {
		_, _ = fmt.Fprintf(sum, "%q %q\n", names[i], types[i]) // a hash takes everything
	}
	if v.Layout.Lambda {
		_, _ = fmt.Fprintf(sum, "%q", job.EpochColumn)
	}
	return fmt.Sprintf("%s [columns %s]", commentOf(v.Ref), hex.EncodeToString(sum.Sum(nil)[:6]))
}

func commentOf(ref job.Ref) string { return "kappactl: partial states" + writtenFor(ref) }

// writtenFor ends the comments of all tables of a version. By it they are known as ours.
func writtenFor(ref job.Ref) string {
	return fmt.Sprintf(" of version %s of job %s. Written by agents; read the serving view instead.", ref.Number, ref.Job)
}

type tableFacts struct {
	Kind    string
	Comment string
	Columns []string
}

func readTable(ctx context.Context, db pg.DB, schema, name string) (*tableFacts, error) {
	rows, err := db.Query(ctx, selectTable, pgx.NamedArgs{"schema": schema, "name": name})
	if err != nil {
		return nil, fmt.Errorf("look for table %s: %w", qualified(schema, name), err)
	}
	t, err := pgx.CollectExactlyOneRow(rows, pgx.RowToAddrOfStructByName[tableFacts])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for table %s: %w", qualified(schema, name), err)
	}
	return t, nil
}

// ownTables reports whether the version's tables are there, which are made together; what else has one of their names
// is refused.
func ownTables(ctx context.Context, db pg.DB, v job.Version) (bool, error) {
	t, err := readTable(ctx, db, v.Schema, v.Table())
	if err != nil {
		return false, err
	}
	if t == nil {
		return false, foreignLayer(ctx, db, v)
	}
	names, _ := v.Layout.StagedColumns()
	if t.Kind == "r" && t.Comment == tableComment(v) && containsAll(t.Columns, names) {
		return true, nil
	}
	return false, foreign(v, v.Table())
}

func foreign(v job.Version, name string) error {
	return notOurs(
		fmt.Sprintf("%s exists and was not made for %s: its comment or columns are not what kappactl writes",
			qualified(v.Schema, name), v.Ref),
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

func checkLayout(v job.Version) error {
	if len(v.TableKey()) > maxIndexColumns {
		return &job.Refusal{
			Code: job.ExitUsage,
			Cause: fmt.Sprintf("the key has %d columns; a PostgreSQL index takes at most %d",
				len(v.Layout.Keys), maxIndexColumns-(len(v.TableKey())-len(v.Layout.Keys))),
			Next: "use fewer columns in GROUP BY or serve.key",
		}
	}
	names, _ := v.Layout.StagedColumns()
	for _, c := range v.Layout.View {
		names = append(names, c.Name)
	}
	tables := v.Tables()
	if v.Layout.Lambda {
		tables = append(tables, v.StagingOf(maxGeneration))
	}
	return errors.Join(checkNames("schema", v.Schema), checkNames("table", tables...), checkNames("column", names...))
}

// Analyze gives the planner statistics of the filled tables.
func (*Store) Analyze(ctx context.Context, db pg.DB, v job.Version) error {
	for _, name := range v.Tables() {
		table := qualified(v.Schema, name)
		if _, err := db.Exec(pg.Long(ctx), "ANALYZE "+table); err != nil {
			return fmt.Errorf("analyze %s: %w", table, refused(err))
		}
	}
	return nil
}
