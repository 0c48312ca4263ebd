package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

type archiveRebuildOptions struct {
	archiveOptions
	adopt bool
}

func newArchiveRebuild(a *app, run func(context.Context, archiveRebuildOptions) error) *cobra.Command {
	o := archiveRebuildOptions{archiveOptions: archiveOptions{app: a}}
	cmd := o.about(&cobra.Command{
		Use:   "rebuild [TOPIC]",
		Short: "Put files back into the manifest that the database has lost",
		Long: `After the database was restored from a backup, put the files that were published since back into the manifest: those whose hash and
footer fit and whose offsets go on where the archive of their partition ends. Nothing else knows what retention has deleted since.
With --adopt it takes the archive that is at the location as this job's own, as after a loss of the whole database: deploy the job
first. Files that are damaged are listed, and the command ends with exit code 5. Run it where the location can be read.`,
		Example:     "  kappactl archive rebuild\n  kappactl archive rebuild orders --adopt",
		Annotations: map[string]string{timeoutKey: noTimeout},
	}, func(ctx context.Context, about archiveOptions) error {
		o.archiveOptions = about
		return run(ctx, o)
	})
	cmd.Flags().BoolVar(&o.adopt, "adopt", false, "take the archive at the location as this one")
	return cmd
}

// archiveRebuilt is the output of archive rebuild.
type archiveRebuilt struct {
	OK       bool              `json:"ok"`
	Files    []archive.Rebuilt `json:"files"`
	Findings []archive.Finding `json:"findings"` // files that are damaged
}

func runArchiveRebuild(ctx context.Context, o archiveRebuildOptions) error {
	c, err := o.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	r := archiveRebuilt{Files: []archive.Rebuilt{}, Findings: []archive.Finding{}}
	if err := o.rebuild(ctx, c, &r); err != nil {
		var marker *archive.MarkerError
		if errors.As(err, &marker) && marker.Found != "" {
			return &job.Refusal{Code: job.ExitConflict, Cause: marker.Error(), Next: "kappactl archive rebuild " +
				marker.Topic + " --adopt   # when it is this job's archive", Err: err}
		}
		return err
	}
	r.OK = len(r.Findings) == 0
	return o.inspected(ctx, r, r.OK, r.print)
}

func (o archiveRebuildOptions) rebuild(ctx context.Context, c *client, r *archiveRebuilt) error {
	var store archive.Store
	archives, err := store.Archives(ctx, c.pool)
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "kappactl-archive-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }() // nothing is left in it
	for _, a := range archives {
		if o.topic != "" && a.Topic != o.topic {
			continue
		}
		if o.adopt {
			if a, err = o.adopted(ctx, c, a); err != nil {
				return err
			}
		}
		before := len(r.Files)
		err := store.Rebuild(ctx, c.pool, c.locations, a, temp, func(f archive.Rebuilt) { r.Files = append(r.Files, f) },
			func(f archive.Finding) { r.Findings = append(r.Findings, f) })
		if err := errors.Join(err, o.noteRebuilt(ctx, c, a, r.Files[before:])); err != nil {
			return err
		}
	}
	return nil
}

// adopted takes the archive at the location as this one.
func (o archiveRebuildOptions) adopted(ctx context.Context, c *client, a archive.Archive) (out archive.Archive,
	err error,
) {
	err = c.pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if out, err = (archive.Store{}).Adopt(ctx, tx, c.locations, a); err != nil {
			return err
		}
		detail := map[string]string{"topic": a.Topic, "topic_id": a.TopicID.String(), "location": a.Location, "id": out.ID}
		return o.noteArchive(ctx, tx, a.Jobs, ledger.EventArchiveAdopted, reason.ArchiveAdopted(a.Topic, a.Location), detail)
	})
	return out, err
}

// noteRebuilt writes the event about files that are in the manifest again, also when the command was interrupted behind
// them. Each was put back in a transaction of its own.
func (o archiveRebuildOptions) noteRebuilt(ctx context.Context, c *client, a archive.Archive,
	files []archive.Rebuilt,
) error {
	if len(files) == 0 {
		return nil
	}
	var ranges []ledger.Gap
	for _, f := range files { // those of a partition follow one another
		if n := len(ranges); n > 0 && ranges[n-1].Partition == f.Partition {
			ranges[n-1].To = f.To
			continue
		}
		ranges = append(ranges, ledger.Gap{Topic: f.Topic, Partition: f.Partition, From: f.From, To: f.To})
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	detail := struct {
		Ranges []ledger.Gap `json:"ranges"`
	}{ranges}
	return o.noteArchive(after, c.pool, a.Jobs, ledger.EventArchiveRebuilt, reason.ArchiveRebuilt(a.Topic, len(files)),
		detail)
}

func (r archiveRebuilt) print(w io.Writer, style render.Style) error {
	t := render.NewTable("partition", "offsets", "outcome", "file")
	for _, f := range r.Files {
		t.Add(render.Text(fmt.Sprintf("%s/%d", f.Topic, f.Partition)), render.Text(f.String()), render.Text("put back"),
			render.Text(f.Name))
	}
	for _, f := range r.Findings {
		t.Add(render.Text(fmt.Sprintf("%s/%d", f.Topic, f.Partition)),
			render.Text(job.Range{From: f.From, To: f.To}.String()),
			render.Toned(render.Bad, f.Cause), render.Text(f.File))
	}
	if t.Len() == 0 {
		_, err := fmt.Fprintln(w, "the manifest has every file that fits: nothing to do")
		return err
	}
	return t.Write(w, style)
}
