package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

type archivePruneOptions struct {
	removeOptions
	topic  string
	before time.Time
	force  bool
}

func newArchivePrune(a *app, run func(context.Context, archivePruneOptions) error) *cobra.Command {
	o := archivePruneOptions{removeOptions: removeOptions{app: a}}
	var before string
	cmd := &cobra.Command{
		Use:   "prune [TOPIC] --before TIME",
		Short: "Remove old files from the beginning of archives",
		Long: `Remove files from the beginning of each partition's archive, up to the first that has a record of TIME or later. Versions that are
deployed afterwards can no longer be replayed from before it. It is refused (exit code 6) while a version still reads what would go: batch
runs of a lambda version begin where it covers its topics. --force removes it nevertheless. The rows of the manifest go first, then the
files. Off a terminal it needs --yes. Do not let a bucket or a cron job delete files: the manifest would still name them.`,
		Example: "  kappactl archive prune --before 2025-01-01 --dry-run\n  kappactl archive prune orders --before 2025-01-01T00:00:00Z --yes",
		Args:    between(nil, []string{"TOPIC"}),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, layout := range []string{time.RFC3339, time.DateOnly} {
				if t, err := time.Parse(layout, before); err == nil {
					o.before = t.UTC()
				}
			}
			if o.before.IsZero() {
				return usage(cmd, "--before %q is not a time: write 2026-01-31T00:00:00Z, or a date in UTC", before)
			}
			if len(args) > 0 {
				o.topic = args[0]
			}
			return run(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&before, "before", "", "the archive is to begin with the file that has records of this `TIME`")
	cmd.Flags().BoolVar(&o.force, "force", false, "also remove what versions still read")
	o.addAsking(cmd.Flags())
	return cmd
}

// archivePruned is the output of archive prune.
type archivePruned struct {
	Before     time.Time       `json:"before"`
	DryRun     bool            `json:"dry_run"`
	Partitions []archive.Prune `json:"partitions"`
	Needed     []archive.Need  `json:"needed"` // by versions; nothing is removed then, unless forced
}

func runArchivePrune(ctx context.Context, o archivePruneOptions) error {
	if err := o.mayAsk("archive prune removes files"); err != nil {
		return err
	}
	c, err := o.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	var store archive.Store
	found, err := store.Statuses(ctx, c.pool, o.topic)
	if err != nil {
		return err
	}
	r := archivePruned{Before: o.before, DryRun: o.dryRun, Partitions: []archive.Prune{}, Needed: []archive.Need{}}
	for _, s := range found {
		p, err := store.Prunable(ctx, c.pool, s, o.before)
		if err != nil {
			return err
		}
		if p.Len() > 0 {
			r.Partitions = append(r.Partitions, p)
		}
	}
	if r.Needed, err = store.Needed(ctx, c.pool, r.Partitions); err != nil {
		return err
	}
	text := func(w io.Writer) error { return r.print(w, o.style()) }
	if refused := r.refused(); refused != nil && !o.force {
		if !o.dryRun {
			text = nil
		}
		return o.outcome(ctx, r, text, refused)
	}
	if !o.dryRun && len(r.Partitions) > 0 {
		question := fmt.Sprintf("remove the archive of %s before %s? [y/N] ",
			render.Plural(int64(len(r.Partitions)), "partition"), o.before.Format(time.RFC3339))
		if err := o.confirmed(question, agrees); err != nil {
			return err
		}
		if err := o.remove(ctx, c, r); err != nil {
			return err
		}
	}
	return o.result(r, text)
}

// refused returns the refusal while versions still read what would go, or nil.
func (r archivePruned) refused() error {
	if len(r.Needed) == 0 {
		return nil
	}
	n := r.Needed[0]
	return &job.Refusal{
		Code: job.ExitConflict, Cause: fmt.Sprintf("%s/%s still reads %s/%d from offset %d on", n.Job, job.Number(n.Version),
			n.Topic, n.Partition, n.From),
		Next: "kappactl archive prune --dry-run lists all of them; an earlier --before keeps what they read, --force removes it",
	}
}

// remove removes the rows of each archive with the event about it, then its files.
func (o archivePruneOptions) remove(ctx context.Context, c *client, r archivePruned) error {
	var store archive.Store
	for rest := r.Partitions; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].TopicID() == rest[0].TopicID() {
			n++
		}
		of := archivePruned{Before: r.Before, Partitions: rest[:n]}
		rest = rest[n:]
		var gone []archive.Unlisted
		err := c.pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
			for _, p := range of.Partitions {
				files, err := store.Unlist(ctx, tx, p)
				if err != nil {
					return err
				}
				gone = append(gone, files...)
			}
			first := of.Partitions[0]
			return o.noteArchive(ctx, tx, first.Jobs(), ledger.EventArchivePruned,
				reason.ArchivePruned(first.Topic, int64(len(gone)), r.Before), of)
		})
		if err == nil {
			err = store.Delete(ctx, c.locations, gone)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r archivePruned) print(w io.Writer, style render.Style) error {
	if len(r.Partitions) == 0 {
		_, err := fmt.Fprintln(w, "no file of the archive is that old: nothing to do")
		return err
	}
	title := "removed"
	if r.DryRun {
		title = "would be removed"
	}
	t := render.NewTable("partition", title, ">files", ">records", ">bytes")
	for _, p := range r.Partitions {
		t.Add(render.Text(fmt.Sprintf("%s/%d", p.Topic, p.Partition)), render.Text(p.String()),
			render.Text(render.Count(p.Files)),
			render.Text(render.Count(p.Records)), render.Text(render.Bytes(p.Bytes)))
	}
	if err := t.Write(w, style); err != nil {
		return err
	}
	for _, n := range r.Needed {
		_, err := fmt.Fprintf(w, "%s%s/%s still reads %s/%d from offset %d on\n", style.Paint(render.Warn, "warning: "),
			n.Job, job.Number(n.Version), n.Topic,
			n.Partition, n.From)
		if err != nil {
			return err
		}
	}
	return nil
}
