package cli

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
)

type archiveVerifyOptions struct {
	archiveOptions
	orphans bool
}

func newArchiveVerify(a *app, run func(context.Context, archiveVerifyOptions) error) *cobra.Command {
	o := archiveVerifyOptions{archiveOptions: archiveOptions{app: a}}
	cmd := o.about(&cobra.Command{
		Use:   "verify [TOPIC]",
		Short: "Read the files of archives again and compare them with the manifest",
		Long: `Read every file that the manifest names: its hash, its footer, its number of records, and whether the ranges of offsets are
contiguous. What is wrong is listed, and the command ends with exit code 5. With --orphans it also lists the files that no row of the
manifest names; they do no harm, and one that is being published now may be among them. Run it where the location can be read.`,
		Example:     "  kappactl archive verify\n  kappactl archive verify orders --orphans -o json",
		Annotations: map[string]string{timeoutKey: noTimeout},
	}, func(ctx context.Context, about archiveOptions) error {
		o.archiveOptions = about
		return run(ctx, o)
	})
	cmd.Flags().BoolVar(&o.orphans, "orphans", false, "also list the files that no row of the manifest names")
	return cmd
}

// archiveVerified is the output of archive verify.
type archiveVerified struct {
	OK bool `json:"ok"`
	archive.Verified
	Findings []archive.Finding `json:"findings"`
	Orphans  []orphan          `json:"orphans"` // null without --orphans
}

// orphan is a file that no row of the manifest names.
type orphan struct {
	Location string `json:"location"`
	Name     string `json:"name"`
	Bytes    int64  `json:"bytes"`
}

func runArchiveVerify(ctx context.Context, o archiveVerifyOptions) error {
	c, err := o.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	r := archiveVerified{Findings: []archive.Finding{}}
	if err := o.files(ctx, c, &r); err != nil {
		return err
	}
	if o.orphans {
		if r.Orphans, err = o.unnamed(ctx, c); err != nil {
			return err
		}
	}
	r.OK = len(r.Findings) == 0
	return o.inspected(ctx, r, r.OK, r.print)
}

// files reads every file.
func (o archiveVerifyOptions) files(ctx context.Context, c *client, r *archiveVerified) error {
	var store archive.Store
	found, err := store.Statuses(ctx, c.pool, o.topic)
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "kappactl-archive-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }() // nothing is left in it
	for _, s := range found {
		o.progress("reading %d files of %s", s.Files, s.Of())
		v, err := store.Verify(ctx, c.pool, c.locations, s, temp,
			func(f archive.Finding) { r.Findings = append(r.Findings, f) })
		if err != nil {
			return err
		}
		r.Files, r.Records, r.Bytes = r.Files+v.Files, r.Records+v.Records, r.Bytes+v.Bytes
	}
	return nil
}

// unnamed lists the files that no row of the manifest names.
func (o archiveVerifyOptions) unnamed(ctx context.Context, c *client) ([]orphan, error) {
	var store archive.Store
	archives, err := store.Archives(ctx, c.pool)
	if err != nil {
		return nil, err
	}
	out := []orphan{}
	for _, a := range archives {
		if o.topic != "" && a.Topic != o.topic {
			continue
		}
		entries, err := store.Orphans(ctx, c.pool, c.locations, a)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			out = append(out, orphan{Location: a.Location, Name: e.Name, Bytes: e.Bytes})
		}
	}
	return out, nil
}

func (r archiveVerified) print(w io.Writer, style render.Style) error {
	if len(r.Findings) > 0 {
		t := render.NewTable("partition", "offsets", "file", "what is wrong")
		for _, f := range r.Findings {
			t.Add(render.Text(fmt.Sprintf("%s/%d", f.Topic, f.Partition)),
				render.Text(job.Range{From: f.From, To: f.To}.String()), render.Text(render.Or(f.File)), render.Text(f.Cause))
		}
		if err := t.Write(w, style); err != nil {
			return err
		}
	}
	if len(r.Orphans) > 0 {
		t := render.NewTable("file that no row names", ">bytes")
		for _, f := range r.Orphans {
			t.Add(render.Text(f.Location+"/"+f.Name), render.Text(render.Bytes(f.Bytes)))
		}
		if err := t.Write(w, style); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%s, %s, %s: %d wrong\n", render.Plural(r.Files, "file"), render.Plural(r.Records, "record"),
		render.Bytes(r.Bytes), len(r.Findings))
	return err
}
