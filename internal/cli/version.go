package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/query"
)

// release is the version of this build; the linker sets it.
var release = "dev"

type versionOptions struct{ *app }

type versionResult struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Engine   string `json:"engine"`
	Dialect  int    `json:"dialect"`
	Schema   int    `json:"schema"`
}

func newVersion(a *app, run func(context.Context, versionOptions) error) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print what this build is",
		Example: "  kappactl version -o json",
		Args:    exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return run(cmd.Context(), versionOptions{a})
		},
	}
}

func runVersion(_ context.Context, o versionOptions) error {
	v := versionResult{
		Version: release, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Engine: query.Engine(), Dialect: query.Dialect, Schema: pg.SchemaVersion,
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Revision = s.Value
			case "vcs.modified":
				v.Modified = s.Value == "true"
			}
		}
	}
	return o.result(v, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "kappactl %s (%s, %s, dialect %d, control schema %d, %s)\n",
			v.Version, cmp.Or(v.Revision, "no revision"), v.Engine, v.Dialect, v.Schema, v.Go)
		return err
	})
}
