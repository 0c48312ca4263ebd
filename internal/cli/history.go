package cli

import (
	"cmp"
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

type historyOptions struct {
	*app
	target target
	limit  int
}

func newHistory(a *app, run func(context.Context, historyOptions) error) *cobra.Command {
	o := historyOptions{app: a}
	cmd := &cobra.Command{
		Use:   "history JOB [VERSION]",
		Short: "Show what happened to a job: who did what, when, and what came of it",
		Long: `Show the events of a job, or of one version, oldest first: deployments, changes of phase, checks with what they found,
promotes, rollbacks and their causes. They stay when versions are retired and when the job is dropped.`,
		Example: "  kappactl history pageviews\n  kappactl history pageviews v2 --limit 10 -o json",
		Args:    between([]string{"JOB"}, []string{"VERSION"}),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.limit < 1 {
				return usage(cmd, "--limit is at least 1")
			}
			if o.target, err = parseTarget(cmd, args); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	cmd.Flags().IntVar(&o.limit, "limit", 100, "the newest `N` events")
	return cmd
}

func runHistory(ctx context.Context, o historyOptions) error {
	c, err := o.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	events, err := c.store.History(ctx, o.target.Job, o.target.Number, o.limit)
	if err != nil {
		return err
	}
	return o.result(events, func(w io.Writer) error { return printEvents(w, o.style(), events) })
}

// who is the name that the client gave, and the database role beside it when that is another.
func who(e ledger.PastEvent) string {
	if name, _, _ := strings.Cut(e.By, "@"); e.By == "" || name == e.DBRole {
		return e.By
	}
	return e.By + " (" + e.DBRole + ")"
}

func printEvents(w io.Writer, style render.Style, events []ledger.PastEvent) error {
	t := render.NewTable("at", "version", "event", "by", "message")
	for _, e := range events {
		t.Add(render.Text(e.At.Format(time.RFC3339)), render.Text(known(e.Version)), render.Text(string(e.Kind)), render.Text(cmp.Or(who(e), render.None)),
			render.Text(strings.ReplaceAll(e.Message, "\n", " ")))
	}
	return t.Write(w, style)
}
