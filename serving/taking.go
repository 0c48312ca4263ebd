package serving

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// taking is one adoption in its transaction. SQL texts go to pgx directly: they hold names and definitions of users.
type taking struct {
	tx          *pg.Tx
	a           job.Adoption
	view, table string // quoted
	text        string // the SELECT of the view

	relation *adoptable
	grants   []Grant
	comments []columnComment
	follow   []following
}

type columnComment struct{ Name, Comment string }

// following is a view that will read the serving view: its definition names the relation by the name that it has now.
type following struct {
	dependant
	definition string
	options    []string
}

// read takes down what is to be the same afterwards.
func (t *taking) read(ctx context.Context) (err error) {
	if t.relation, err = readAdoptable(ctx, t.tx, t.a.View, t.a.To); err != nil {
		return err
	}
	if t.grants, err = readGrants(ctx, t.tx, t.a.OID); err != nil {
		return err
	}
	rows, err := t.tx.Query(ctx, selectColumnComments, pgx.NamedArgs{"oid": t.a.OID})
	if err != nil {
		return fmt.Errorf("read the comments of %s: %w", t.a.View, err)
	}
	if t.comments, err = pgx.CollectRows(rows, pgx.RowToStructByName[columnComment]); err != nil {
		return fmt.Errorf("read the comments of %s: %w", t.a.View, err)
	}
	if t.a.Copied() {
		return nil
	}
	found, err := readDependantsOf(ctx, t.tx, t.a.OID)
	for _, d := range found {
		if d.OID != nil {
			t.follow = append(t.follow, following{dependant: d})
		}
	}
	return err
}

// replaceTable renames the relation and makes the view. Definitions of other views are read under its lock, with every
// name in them written out, and run again when that name is the view's.
func (t *taking) replaceTable(ctx context.Context) error {
	if t.a.Kind == "table" || t.a.Kind == "partitioned table" {
		if err := t.run(ctx, "LOCK TABLE "+t.view+" IN ACCESS EXCLUSIVE MODE"); err != nil {
			return err
		}
	}
	for i := range t.follow {
		f := &t.follow[i]
		var err error
		if f.definition, f.options, err = t.definition(ctx, *f.OID); err != nil {
			return err
		}
	}
	rename := "ALTER TABLE " + t.view + " RENAME TO " + pgIdent(t.a.To.Table())
	if err := t.run(ctx, rename, "CREATE VIEW "+t.view+" AS\n"+t.text,
		"ALTER VIEW "+t.view+" OWNER TO "+pgIdent(t.a.Owner)); err != nil {
		return err
	}
	if err := t.dress(ctx, t.a.View); err != nil {
		return err
	}
	for _, f := range t.follow {
		sql := fmt.Sprintf("CREATE OR REPLACE VIEW %s%s AS\n%s", pgx.Identifier{f.Schema, f.Name}.Sanitize(),
			withOptions(f.options), f.definition)
		if err := t.run(ctx, sql); err != nil {
			if code := pg.Code(err); pgerrcode.IsSyntaxErrororAccessRuleViolation(code) ||
				code == pgerrcode.FeatureNotSupported || code == pgerrcode.InvalidParameterValue {
				return &job.Refusal{
					Code: job.ExitConflict, Err: err, Cause: fmt.Sprintf("view %s cannot read a view in place of the table: %v",
						f.view(), err),
					Next: "drop or change that view, then adopt again",
				}
			}
			return err
		}
	}
	return nil
}

// copyView copies a view's definition to the version's name and lets the view read the copy.
func (t *taking) copyView(ctx context.Context) error {
	definition, options, err := t.definition(ctx, t.a.OID)
	if err != nil {
		return err
	}
	err = t.run(ctx, "CREATE VIEW "+t.table+withOptions(options)+" AS\n"+definition,
		"ALTER VIEW "+t.table+" OWNER TO "+pgIdent(t.a.Owner))
	if err != nil {
		return err
	}
	if err := t.dress(ctx, job.ViewName{Schema: t.a.View.Schema, Name: t.a.To.Table()}); err != nil {
		return err
	}
	return t.run(ctx, "CREATE OR REPLACE VIEW "+t.view+withOptions(withoutCheck(options))+" AS\n"+t.text)
}

// dress gives a new view the grants and comments of the relation.
func (t *taking) dress(ctx context.Context, view job.ViewName) error {
	if err := grant(ctx, t.tx.Raw(), view, t.grants); err != nil {
		return err
	}
	name := pgx.Identifier{view.Schema, view.Name}.Sanitize()
	if t.relation.Comment != "" {
		if err := t.run(ctx, "COMMENT ON VIEW "+name+" IS "+literal(t.relation.Comment)); err != nil {
			return err
		}
	}
	for _, c := range t.comments {
		if err := t.run(ctx, "COMMENT ON COLUMN "+name+"."+pgIdent(c.Name)+" IS "+literal(c.Comment)); err != nil {
			return err
		}
	}
	return nil
}

// definition is a view's SELECT with every name written out, and its options.
func (t *taking) definition(ctx context.Context, oid int64) (text string, options []string, err error) {
	var path string
	if err := t.tx.QueryRow(ctx, `SELECT current_setting('search_path')`).Scan(&path); err != nil {
		return "", nil, fmt.Errorf("read search_path: %w", err)
	}
	if err := t.searchPath(ctx, ""); err != nil {
		return "", nil, err
	}
	err = t.tx.QueryRow(ctx, selectDefinition, pgx.NamedArgs{"oid": oid}).Scan(&text, &options)
	if err != nil {
		return "", nil, fmt.Errorf("read the definition of a view: %w", err)
	}
	return strings.TrimSuffix(strings.TrimSpace(text), ";"), options, t.searchPath(ctx, path)
}

func (t *taking) searchPath(ctx context.Context, path string) error {
	if _, err := t.tx.Exec(ctx, `SELECT set_config('search_path', @path, true)`, pgx.NamedArgs{"path": path}); err != nil {
		return fmt.Errorf("set search_path: %w", err)
	}
	return nil
}

func (t *taking) run(ctx context.Context, statements ...string) error {
	for _, sql := range statements {
		if _, err := t.tx.Raw().Exec(ctx, sql); err != nil {
			return refused(err)
		}
	}
	return nil
}

// GiveBack gives an adopted relation its name back, after the view in its place was dropped.
func (*Store) GiveBack(ctx context.Context, tx *pg.Tx, view job.ViewName, to job.Ref) error {
	sql := fmt.Sprintf("ALTER TABLE %s RENAME TO %s", qualified(view.Schema, to.Table()), ident(view.Name))
	if _, err := tx.Exec(ctx, sql); err != nil {
		return fmt.Errorf("rename %s back to %s: %w", to.Table(), view, refused(err))
	}
	return nil
}
