package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/pg"
)

type initOptions struct {
	*app
	print bool
}

func newInit(a *app, run func(context.Context, initOptions) error) *cobra.Command {
	o := initOptions{app: a}
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Create or upgrade the control schema in PostgreSQL",
		Long: `Create the control schema, or bring it up to this release. It can be run again at any time, and by two at once.
With --print it opens no connection: it shows the SQL and the rights it needs, for a database administrator to run.`,
		Example: "  kappactl init\n  kappactl init --print | psql",
		Args:    exactly(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), o) },
	}
	cmd.Flags().BoolVar(&o.print, "print", false, "print the SQL and the rights it needs instead of running it")
	return cmd
}

type initResult struct {
	Schema  string `json:"schema"`
	Version int    `json:"version"`
	SQL     string `json:"sql,omitempty"`
}

func runInit(ctx context.Context, o initOptions) error {
	settings, err := o.settings()
	if err != nil {
		return err
	}
	schema := or(settings.Schema, pg.DefaultSchema)
	result := initResult{Schema: schema, Version: pg.SchemaVersion}
	if o.print {
		text, err := pg.MigrationSQL(schema)
		if err != nil {
			return err
		}
		result.SQL = rights(schema) + text
		return o.result(result, func(w io.Writer) error {
			_, err := io.WriteString(w, result.SQL)
			return err
		})
	}
	pool, err := o.connect(ctx, settings)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := pg.Migrate(ctx, pool); err != nil {
		return err
	}
	return o.result(result, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "control schema %q is at version %d\nnext: kappactl serve\n", schema, pg.SchemaVersion)
		return err
	})
}

// rights says in SQL comments what a role needs; the names in capitals are the reader's.
func rights(schema string) string {
	q := pg.Ident(schema)
	return fmt.Sprintf(`-- The control schema of kappactl, version %d.
--
-- To run this text a role needs:        GRANT CREATE ON DATABASE db TO role;
-- To run kappactl, once this has run (a role that owns the schema has these already):
--   GRANT USAGE ON SCHEMA %s TO role;
--   GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %s TO role;
--   GRANT USAGE ON ALL SEQUENCES IN SCHEMA %s TO role;
-- In each schema that serves a view, because version tables live beside their view:
--   GRANT USAGE, CREATE ON SCHEMA public TO role;
-- Optional; without it a promote may wait for readers that would not be harmed:
--   GRANT pg_read_all_stats TO role;

`, pg.SchemaVersion, q, q, q)
}
