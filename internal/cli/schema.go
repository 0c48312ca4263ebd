package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/job"
)

type schemaOptions struct{ *app }

func newSchema(a *app, run func(context.Context, schemaOptions) error) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the job file",
		Long: `Print the JSON Schema of the job file, for editors: with a line "# yaml-language-server: $schema=FILE" in a job file
they complete keys and underline faults. It opens no connection.`,
		Example: "  kappactl schema > job.schema.json",
		Args:    exactly(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), schemaOptions{a}) },
	}
}

// runSchema prints the same text for every --output: it is JSON already.
func runSchema(_ context.Context, o schemaOptions) error {
	text, err := job.Schema()
	if err != nil {
		return err
	}
	_, err = o.sys.Out.Write(text)
	return err
}
