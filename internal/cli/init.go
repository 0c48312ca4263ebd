package cli

import (
	"cmp"
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
With --print it opens no connection: it shows the SQL, and at its end docs/rights.sql, the roles and rights that an agent and the
commands need, for a database administrator to run. docs/rights.sql alone can be run again.`,
		Example: "  kappactl init\n  kappactl init --print | psql -1",
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
	schema := cmp.Or(settings.Schema, pg.DefaultSchema)
	result := initResult{Schema: schema, Version: pg.SchemaVersion}
	if o.print {
		text, err := pg.MigrationSQL(schema, release)
		if err != nil {
			return err
		}
		result.SQL = fmt.Sprintf("-- The control schema of kappactl, version %d. To run this a role needs: GRANT CREATE ON DATABASE … TO role;\n\n%s\n%s",
			pg.SchemaVersion, text, pg.RightsSQL(schema, "public"))
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
	if err := pg.Migrate(ctx, pool, release); err != nil {
		return err
	}
	return o.result(result, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "control schema %q is at version %d\nnext: kappactl serve\n", schema, pg.SchemaVersion)
		return err
	})
}
