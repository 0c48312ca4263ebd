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
	file       string
	seed       uint64
	requireLaw bool
}

func newCheck(a *app, run func(context.Context, checkOptions) error) *cobra.Command {
	o := checkOptions{app: a}
	require := choice{of: []string{"law"}}
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Validate a job file, compile its query, show the resulting table and prove it mergeable",
		Long: `Read the job file, take its query apart and print each column of the view: its type, what is stored for it, and whether
it is exact. Every fault is named with line, column, cause and cure.

With a database it also tries the law of the product on records of the topic: cut into random parts, merged by PostgreSQL in
temporary tables that are rolled back, they must give what the query gives in one pass. It takes the 2,000 oldest and the 2,000
newest records, or generated ones when there are none, in 30 random splits; --seed repeats a run. A law that does not hold ends it
with 5. PostgreSQL also looks at the SQL below serve and checks; what it could never run ends it with 2. Without a database it says so, and --require law makes that a failure.`,
		Example: "  kappactl check examples/pageviews.yaml\n  kappactl check examples/pageviews.yaml --require law --seed 42",
		Args:    exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.file, o.requireLaw = args[0], require.value == "law"
			if !cmd.Flags().Changed("seed") {
				o.seed = uint64(a.sys.Now().UnixNano()) % 1_000_000 //nolint:gosec // after 1970
			}
			return run(cmd.Context(), o)
		},
	}
	cmd.Flags().Uint64Var(&o.seed, "seed", 0, "repeat the random splits of a run that printed this `NUMBER`")
	cmd.Flags().Var(&require, "require", "fail when the law could not be checked")
	return cmd
}

type checkResult struct {
	Job     job.Name      `json:"job"`
	Hash    string        `json:"hash"`
	View    string        `json:"view"`
	Shape   job.Shape     `json:"shape"`
	Columns []checkColumn `json:"columns"`
	Law     string        `json:"law"`
	Proof   proof         `json:"proof"`
}

type checkColumn struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	StoredAs string `json:"stored_as"`
	Exact    bool   `json:"exact"`
	Key      bool   `json:"key"`
}

func runCheck(ctx context.Context, o checkOptions) error {
	c, err := compile(ctx, o.file)
	if err != nil {
		return err
	}
	result := checkResult{Job: c.spec.Job, Hash: c.hash, View: c.spec.Serve.View.String(), Shape: c.query.Layout.Shape}
	for _, v := range c.query.Layout.View {
		result.Columns = append(result.Columns, checkColumn{Name: v.Name, Type: v.Type, StoredAs: v.StoredAs, Exact: v.Exact, Key: v.Key})
	}
	var failed error
	result.Law, result.Proof, failed = o.prove(ctx, c)
	result.typed()
	err = o.result(result, func(w io.Writer) error {
		if !o.style().People {
			o.progress("law: %s", result.Proof.words(result.Law)) // it would not be a row of the table
		}
		return result.print(w, o.style())
	})
	if err != nil {
		return err
	}
	return o.verdict(result, failed)
}

// typed fills in the types that only PostgreSQL knows: those of serve.columns.
func (r checkResult) typed() {
	if r.Proof.Report == nil {
		return
	}
	for i, c := range r.Columns {
		r.Columns[i].Type = or(c.Type, r.Proof.Types[c.Name])
	}
}

// verdict is how check ends once its result is printed.
func (o checkOptions) verdict(r checkResult, failed error) error {
	switch {
	case failed != nil:
		return failed
	case r.Law == lawBroken:
		return &job.Refusal{
			Code: job.ExitChecks,
			Cause: fmt.Sprintf("the law does not hold: round %d (%s, %d parts, %d lanes) differs from the query run once: %s", r.Proof.Failure.Round,
				r.Proof.Failure.How, r.Proof.Failure.Parts, r.Proof.Failure.Lanes, lawExample(r.Proof.Failure)),
			Next: fmt.Sprintf("kappactl check %s --seed %d   # this is a fault of kappactl: please report it with the file", o.file, r.Proof.Seed),
		}
	case r.Law == lawNotChecked && o.requireLaw:
		return r.Proof.err
	}
	return nil
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
		t.Add(render.Text(c.Name), render.Text(render.Or(c.Type)), render.Text(stored), exact)
	}
	if style.People {
		if _, err := fmt.Fprintf(w, "%s  %s  view %s\n\n", style.Paint(render.Strong, string(r.Job)), r.Hash, r.View); err != nil {
			return err
		}
	}
	if err := t.Write(w, style); err != nil {
		return err
	}
	if style.People {
		_, err := fmt.Fprintf(w, "\nlaw: %s\n", r.Proof.words(r.Law))
		return err
	}
	return nil
}
