package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/kappactl/kappactl/batchlayer"
	"github.com/kappactl/kappactl/batchlayer/schedule"
	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/httpapi"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/internal/tui"
	"github.com/kappactl/kappactl/reprocess/status"
)

// jobStatus is a job as status JOB prints it.
type jobStatus struct {
	status.Job
	Archive  []archiveStatus     `json:"archive"`  // of its topics; empty when the job keeps no archive
	Schedule *schedule.Status    `json:"schedule"` // null when the job has none
	Layers   []batchlayer.Layers `json:"layers"`   // of its lambda versions, the newest first; empty when it has none
}

// archivesOf are the archived partitions that a job wants.
func archivesOf(ctx context.Context, db pg.DB, name job.Name) ([]archiveStatus, error) {
	all, err := archive.Store{}.Statuses(ctx, db, "")
	out := []archiveStatus{}
	for _, s := range all {
		if slices.Contains(s.Jobs, string(name)) {
			a := archiveStatus{Status: s}
			a.Command = a.next()
			out = append(out, a)
		}
	}
	return out, err
}

// archivedOf is the archive of a job's topics in sum; nil when it keeps none.
func archivedOf(ctx context.Context, db pg.DB, name job.Name) (*tui.Archived, error) {
	found, err := archivesOf(ctx, db, name)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	var out tui.Archived
	for _, s := range found {
		out.Files, out.Bytes = out.Files+s.Files, out.Bytes+s.Bytes
		if s.Behind != nil {
			out.Behind += *s.Behind
		}
		out.Troubled = out.Troubled || s.State == archive.StateLate || s.State == archive.StateFault ||
			s.State == archive.StateError
	}
	return &out, nil
}

// archiveLines are a line about the archive of a job, and one for each partition with trouble.
func archiveLines(w io.Writer, style render.Style, found []archiveStatus) error {
	if len(found) == 0 {
		return nil
	}
	var files, bytes, behind int64
	var trouble []string
	for _, s := range found {
		files, bytes = files+s.Files, bytes+s.Bytes
		if s.Behind != nil {
			behind += *s.Behind
		}
		switch s.State {
		case archive.StateLate:
			trouble = append(trouble,
				fmt.Sprintf("the archive of %s is late: retention may delete records before they are archived, from %s on", s.Of(),
					render.Time(s.Deadline)))
		case archive.StateFault, archive.StateError:
			text := fmt.Sprintf("the archive of %s: %s", s.Of(), s.Detail)
			if s.Command != "" {
				text += "; next: " + s.Command
			}
			trouble = append(trouble, text)
		case archive.StateArchiving, archive.StateWaiting, archive.StateEnded:
		}
	}
	_, err := fmt.Fprintf(w, "\narchive: %s, %s, %s behind\n", render.Plural(files, "file"), render.Bytes(bytes),
		render.Plural(behind, "offset"))
	for _, text := range trouble {
		if err == nil {
			_, err = fmt.Fprintf(w, "%s%s\n", style.Paint(render.Warn, "warning: "), text)
		}
	}
	return err
}

// archivedFor returns the metrics of archives.
func archivedFor(ctx context.Context, db pg.DB, now time.Time) ([]httpapi.Archived, error) {
	all, err := archive.Store{}.Statuses(ctx, db, "")
	out := make([]httpapi.Archived, len(all))
	for i, s := range all {
		out[i] = httpapi.Archived{
			Topic: s.Topic, Partition: s.Partition, State: string(s.State), Behind: s.Behind,
			RetentionSeconds: secondsUntil(s.Deadline, now), Records: s.Records, Bytes: s.Bytes,
		}
	}
	return out, err
}
