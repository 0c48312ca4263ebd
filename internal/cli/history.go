package cli

import (
	"cmp"
	"context"
	"io"
	"slices"
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
		Use:   "history [JOB [VERSION]]",
		Short: "Show what happened to jobs: who did what, when, and what came of it",
		Long: `Show the events of all jobs, of one, or of one version, oldest first: deployments, changes of phase, checks with what they found,
promotes, rollbacks and their causes. They stay when versions are retired and when the job is dropped.`,
		Example: "  kappactl history\n  kappactl history pageviews\n  kappactl history pageviews v2 --limit 10 -o json",
		Args:    between(nil, []string{"JOB", "VERSION"}),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.limit < 1 {
				return usage(cmd, "--limit is at least 1")
			}
			if len(args) > 0 {
				if o.target, err = parseTarget(cmd, args); err != nil {
					return err
				}
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
	return o.result(events, func(w io.Writer) error { return printEvents(w, o.style(), events, o.target.Job == "") })
}

// who is the name that the client gave, and the database role beside it when that is another.
func who(e ledger.PastEvent) string {
	if name, _, _ := strings.Cut(e.By, "@"); e.By == "" || name == e.DBRole {
		return e.By
	}
	return e.By + " (" + e.DBRole + ")"
}

// historyWidth is the width of a terminal that has room for who did it beside the message.
const historyWidth = 100

// printEvents is a table of events; jobs adds the column job.
func printEvents(w io.Writer, style render.Style, events []ledger.PastEvent, jobs bool) error {
	titles := []string{"at", "version", "event", "by", "message"}
	narrow := style.People && style.Width > 0 && style.Width < historyWidth
	if narrow {
		titles = []string{"at", "version", "event", "message"}
	}
	if jobs {
		titles = slices.Insert(titles, 1, "job")
	}
	t := render.NewTable(titles...)
	for _, e := range events {
		row := []render.Cell{
			render.Text(e.At.Format(time.RFC3339)), render.Text(known(e.Version)),
			render.Text(string(e.Kind)),
		}
		message := strings.ReplaceAll(e.Message, "\n", " ")
		switch by := who(e); {
		case !narrow:
			row = append(row, render.Text(cmp.Or(by, render.None)))
		case by != "":
			message += " (by " + by + ")"
		}
		row = append(row, render.Text(message))
		if jobs {
			row = slices.Insert(row, 1, render.Text(string(e.Job)))
		}
		t.Add(row...)
	}
	return t.Write(w, style)
}
