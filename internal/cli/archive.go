package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// newArchive holds the commands about the raw records that are kept beyond retention.
func newArchive(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "archive",
		Short:   "Look after the raw records that are kept beyond retention",
		Long:    "Look after the archives of topics: raw records in Parquet files, which jobs ask for with the key archive.",
		Example: "  kappactl archive status",
	}
	asGroup(cmd)
	cmd.AddCommand(newArchiveStatus(a, runArchiveStatus), newArchiveList(a, runArchiveList),
		newArchiveVerify(a, runArchiveVerify),
		newArchiveRebuild(a, runArchiveRebuild), newArchiveResume(a, runArchiveResume), newArchivePrune(a, runArchivePrune),
		newArchiveType(a, runArchiveType))
	return cmd
}

type archiveOptions struct {
	*app
	topic string // empty: every topic
	limit int
}

// about makes cmd one about TOPIC, or about every topic without it.
func (o *archiveOptions) about(cmd *cobra.Command, run func(context.Context, archiveOptions) error) *cobra.Command {
	cmd.Args = between(nil, []string{"TOPIC"})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			o.topic = args[0]
		}
		return run(cmd.Context(), *o)
	}
	return cmd
}

// inspected prints the result of a look at files; exit code 5 unless all were sound.
func (o archiveOptions) inspected(ctx context.Context, result any, sound bool,
	print func(io.Writer, render.Style) error,
) error {
	var failed error
	if !sound {
		failed = &codeError{Code: job.ExitChecks, Cause: "not all files of the archive are sound"}
	}
	return o.outcome(ctx, result, func(w io.Writer) error { return print(w, o.style()) }, failed)
}

func newArchiveStatus(a *app, run func(context.Context, archiveOptions) error) *cobra.Command {
	o := archiveOptions{app: a}
	return o.about(&cobra.Command{
		Use:   "status [TOPIC]",
		Short: "Show how far topics are archived",
		Long: `Show for each archived partition the offsets that the archive holds, how far it is behind the log, and when retention may delete
records before they are archived. States: archiving, waiting (no agent has it), late (less than two times roll.every is left before
retention may delete what is not archived), error (tried again), fault (see archive resume), ended (no job wants it).`,
		Example: "  kappactl archive status\n  kappactl archive status orders -o json",
	}, run)
}

func runArchiveStatus(ctx context.Context, o archiveOptions) error {
	c, err := o.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	partitions, err := archive.Store{}.Statuses(ctx, c.pool, o.topic)
	if err != nil {
		return err
	}
	found := make([]archiveStatus, len(partitions))
	for i, p := range partitions {
		found[i] = archiveStatus{Status: p}
		found[i].Command = found[i].next()
	}
	return o.result(found, func(w io.Writer) error { return printArchive(w, o.style(), found) })
}

// archiveStatus is a partition as archive status prints it.
type archiveStatus struct {
	archive.Status
	Command string `json:"next_command"` // empty: nothing is to be done
}

// next is the command that lets a partition go on after a fault.
func (s archiveStatus) next() string {
	switch {
	case s.State != archive.StateFault:
		return ""
	case s.FaultFrom != nil && s.FaultTo != nil && *s.FaultFrom < *s.FaultTo:
		return "kappactl archive resume --accept-gap " +
			ledger.Gap{Topic: s.Topic, Partition: s.Partition, From: *s.FaultFrom, To: *s.FaultTo}.String()
	}
	return "kappactl archive resume " + s.Topic
}

func printArchive(w io.Writer, style render.Style, found []archiveStatus) error {
	t := render.NewTable("partition", "state", ">from", ">to", ">behind", ">files", ">bytes", "deadline", "detail")
	for _, s := range found {
		tone := render.Plain
		switch s.State {
		case archive.StateFault, archive.StateError:
			tone = render.Bad
		case archive.StateLate:
			tone = render.Warn
		case archive.StateArchiving, archive.StateWaiting, archive.StateEnded:
		}
		t.Add(render.Text(s.Topic+"/"+strconv.Itoa(int(s.Partition))), render.Toned(tone, string(s.State)),
			render.Text(strconv.FormatInt(s.Start, 10)),
			render.Text(strconv.FormatInt(s.Next, 10)), render.Text(render.CountOf(s.Behind)),
			render.Text(render.Count(s.Files)),
			render.Text(render.Bytes(s.Bytes)), render.Text(render.Time(s.Deadline)), render.Text(render.Or(s.Detail)))
	}
	if err := t.Write(w, style); err != nil {
		return err
	}
	for _, s := range found {
		if next := s.next(); next != "" {
			if _, err := fmt.Fprintln(w, "next: "+next); err != nil {
				return err
			}
		}
	}
	return nil
}

func newArchiveList(a *app, run func(context.Context, archiveOptions) error) *cobra.Command {
	o := archiveOptions{app: a}
	cmd := o.about(&cobra.Command{
		Use:   "list [TOPIC]",
		Short: "List the files of archives",
		Long: `List the files that the manifest names, by topic, partition and offset. A range without a file is a gap that was accepted with
archive resume.`,
		Example: "  kappactl archive list orders\n  kappactl archive list --limit 1000 -o csv",
	}, run)
	cmd.Flags().IntVar(&o.limit, "limit", 100, "at most `N` files of a partition")
	return cmd
}

// archiveFile is a file as it is printed.
type archiveFile struct {
	Topic       string     `json:"topic"`
	TopicID     string     `json:"topic_id"`
	Partition   int32      `json:"partition"`
	From        int64      `json:"from"`
	To          int64      `json:"to"`
	Records     int64      `json:"records"`
	Bytes       int64      `json:"bytes"`
	MinTime     *time.Time `json:"min_time"` // of its records; null without records
	MaxTime     *time.Time `json:"max_time"`
	PublishedAt time.Time  `json:"published_at"`
	Location    string     `json:"location"`
	Name        *string    `json:"name"` // null: an accepted gap
	SHA256      string     `json:"sha256"`
}

func newArchiveFile(f archive.FileRow) archiveFile {
	out := archiveFile{
		Topic: f.Topic, TopicID: f.TopicID.String(), Partition: f.ID, From: f.From, To: f.To, Records: f.Records,
		Bytes:       f.Bytes,
		PublishedAt: f.PublishedAt, Location: f.Location, SHA256: fmt.Sprintf("%x", f.SHA256),
	}
	if f.MinTimestamp != nil && f.MaxTimestamp != nil {
		out.MinTime, out.MaxTime = new(time.UnixMilli(*f.MinTimestamp).UTC()), new(time.UnixMilli(*f.MaxTimestamp).UTC())
	}
	if !f.Gap() {
		out.Name = &f.Name
	}
	return out
}

func runArchiveList(ctx context.Context, o archiveOptions) error {
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
	out := []archiveFile{}
	for _, s := range found {
		files, err := store.Files(ctx, c.pool, s.Of().TopicID, s.Partition, s.Start, o.limit)
		if err != nil {
			return err
		}
		for _, f := range files {
			out = append(out, newArchiveFile(f))
		}
	}
	return o.result(out, func(w io.Writer) error {
		t := render.NewTable("partition", ">from", ">to", ">records", ">bytes", "published", "file")
		for _, f := range out {
			name := "accepted gap"
			if f.Name != nil {
				name = f.Location + "/" + *f.Name
			}
			t.Add(render.Text(f.Topic+"/"+strconv.Itoa(int(f.Partition))), render.Text(strconv.FormatInt(f.From, 10)),
				render.Text(strconv.FormatInt(f.To, 10)),
				render.Text(render.Count(f.Records)), render.Text(render.Bytes(f.Bytes)), render.Text(render.Time(&f.PublishedAt)),
				render.Text(name))
		}
		return t.Write(w, o.style())
	})
}
