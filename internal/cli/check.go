package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
)

type checkOptions struct {
	*app
	file string
}

func newCheck(a *app, run func(context.Context, checkOptions) error) *cobra.Command {
	o := checkOptions{app: a}
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Validate a job file, compile its query and show the resulting table",
		Long: `Read the job file, take its query apart and print each column of the view: its type, what is stored for it, and whether
it is exact. Every fault is named with line, column, cause and cure. It opens no connection.`,
		Example: "  kappactl check examples/pageviews.yaml",
		Args:    exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.file = args[0]
			return run(cmd.Context(), o)
		},
	}
}

type checkResult struct {
	Job     job.Name      `json:"job"`
	Hash    string        `json:"hash"`
	View    string        `json:"view"`
	Shape   job.Shape     `json:"shape"`
	Columns []checkColumn `json:"columns"`
	Law     string        `json:"law"`
}

type checkColumn struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	StoredAs string `json:"stored_as"`
	Exact    bool   `json:"exact"`
	Key      bool   `json:"key"`
}

// lawNotChecked stands until check can sample the topic.
const lawNotChecked = "not checked"

func runCheck(ctx context.Context, o checkOptions) error {
	c, err := compile(ctx, o.file)
	if err != nil {
		return err
	}
	result := checkResult{
		Job: c.spec.Job, Hash: c.hash, View: c.spec.Serve.View.String(), Shape: c.query.Layout.Shape, Law: lawNotChecked,
	}
	for _, v := range c.query.Layout.View {
		result.Columns = append(result.Columns, checkColumn{Name: v.Name, Type: v.Type, StoredAs: v.StoredAs, Exact: v.Exact, Key: v.Key})
	}
	return o.result(result, func(w io.Writer) error {
		if !o.style().People {
			o.progress("law: %s", result.Law) // it would not be a row of the table
		}
		return result.print(w, o.style())
	})
}

func (r checkResult) print(w io.Writer, style render.Style) error {
	t := render.NewTable("column", "type", "stored as", "exact")
	for _, c := range r.Columns {
		exact := render.Text("exact")
		if !c.Exact {
			exact = render.Toned(render.Warn, "approximate")
		}
		stored := c.StoredAs
		if c.Key {
			stored = or(stored, "key")
		}
		t.Add(render.Text(c.Name), render.Text(c.Type), render.Text(stored), exact)
	}
	if !style.People {
		return t.Write(w, style)
	}
	if _, err := fmt.Fprintf(w, "%s  %s  view %s\n\n", style.Paint(render.Strong, string(r.Job)), r.Hash, r.View); err != nil {
		return err
	}
	if err := t.Write(w, style); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nlaw: %s\n", r.Law)
	return err
}
