package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/internal/typed"
)

type archiveTypeOptions struct {
	*app
	target target
}

func newArchiveType(a *app, run func(context.Context, archiveTypeOptions) error) *cobra.Command {
	o := archiveTypeOptions{app: a}
	return &cobra.Command{
		Use:   "type JOB [VERSION]",
		Short: "Store the declared columns of archived records, so that replays need not decode them again",
		Long: `Decode the records of each archive file of the job's topics as the version declares its columns, and store the result beside the file.
Replays of versions that declare the same columns read it in place of the records; everything else reads the records. From then on
agents do the same with files that are archived or merged, once they have a quarter of archive.roll.size. Files that are typed already are
left out, and files with columns that no version declares any more are removed. Without VERSION it is the newest one. Run it where the
location can be read and written.`,
		Example:     "  kappactl archive type pageviews\n  kappactl archive type pageviews v2",
		Args:        between([]string{"JOB"}, []string{"VERSION"}),
		Annotations: map[string]string{timeoutKey: noTimeout},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.target, err = parseTarget(cmd, args); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
}

// archiveTyped is the output of archive type.
type archiveTyped struct {
	Fingerprint string `json:"fingerprint"`
	typed.Total
	Removed int `json:"removed"` // files
}

func runArchiveType(ctx context.Context, o archiveTypeOptions) error {
	c, err := o.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	var store typed.Store
	src, err := store.Source(ctx, c.pool, o.target.Job, o.target.Number)
	if err != nil {
		return err
	}
	if src == nil {
		return &job.Refusal{
			Code: job.ExitUsage, Cause: fmt.Sprintf("job %q has no such version", o.target.Job), Next: "kappactl status " +
				string(o.target.Job),
		}
	}
	r := archiveTyped{Fingerprint: typed.Fingerprint(*src)}
	if err := o.files(ctx, c, *src, &r); err != nil {
		return err
	}
	if err := store.Keep(ctx, c.pool, *src); err != nil {
		return err
	}
	unused, err := store.Unused(ctx, c.pool)
	if err == nil {
		r.Removed, err = len(unused), archive.Store{}.Delete(ctx, c.locations, unused)
	}
	if err != nil {
		return err
	}
	return o.result(r, func(w io.Writer) error {
		text := fmt.Sprintf("%s typed: %s, %s", render.Plural(r.Files, "file"), render.Plural(r.Records, "record"),
			render.Bytes(r.Bytes))
		if r.Rejected > 0 {
			text += fmt.Sprintf("; %s cannot be decoded", render.Plural(r.Rejected, "record"))
		}
		if r.Removed > 0 {
			text += fmt.Sprintf("; %s of other columns removed", render.Plural(int64(r.Removed), "file"))
		}
		_, err := fmt.Fprintln(w, text)
		return err
	})
}

// files makes what is missing, partition by partition.
func (o archiveTypeOptions) files(ctx context.Context, c *client, src job.Source, r *archiveTyped) error {
	all, err := archive.Store{}.Statuses(ctx, c.pool, "")
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "kappactl-archive-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }() // nothing is left in it
	for _, s := range all {
		if !slices.Contains(src.Topics, s.Topic) {
			continue
		}
		o.progress("reading the archive of %s", s.Of())
		t, err := typed.Store{}.Type(ctx, c.pool, c.locations, s, src, temp)
		r.Files, r.Records, r.Rejected, r.Bytes = r.Files+t.Files, r.Records+t.Records, r.Rejected+t.Rejected, r.Bytes+t.Bytes
		if err != nil {
			return err
		}
	}
	return nil
}
