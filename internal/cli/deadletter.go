package cli

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/speedlayer"
)

// newDeadletter holds the commands about records that could not be processed.
func newDeadletter(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "deadletter",
		Short:   "Look at records that could not be processed",
		Long:    "Look at the records that a version could not process, and whether a corrected job file would.",
		Example: "  kappactl deadletter list pageviews",
	}
	asGroup(cmd)
	cmd.AddCommand(newDeadletterList(a, runDeadletterList), newDeadletterShow(a, runDeadletterShow),
		newDeadletterRetry(a, runDeadletterRetry))
	return cmd
}

type deadletterOptions struct {
	*app
	target target
	place  *recordPlace // of one record
	limit  int
	file   jobFile
}

// recordPlace is TOPIC/PARTITION@OFFSET.
type recordPlace struct {
	topic     string
	partition int32
	offset    int64
}

func parsePlace(text string) (recordPlace, bool) {
	at := strings.LastIndexByte(text, '@')
	slash := strings.LastIndexByte(text, '/')
	if at < 0 || slash < 0 || slash > at {
		return recordPlace{}, false
	}
	partition, err := strconv.ParseInt(text[slash+1:at], 10, 32)
	if err != nil || partition < 0 {
		return recordPlace{}, false
	}
	offset, err := strconv.ParseInt(text[at+1:], 10, 64)
	return recordPlace{text[:slash], int32(partition), offset}, err == nil && offset >= 0 && slash > 0
}

func newDeadletterList(a *app, run func(context.Context, deadletterOptions) error) *cobra.Command {
	o := deadletterOptions{app: a}
	return o.some(&cobra.Command{
		Use:     "list JOB [VERSION]",
		Short:   "List the records that a version could not process",
		Long:    "List the dead letters of a version in the order of their places. Without VERSION it is the live version, else the newest.",
		Example: "  kappactl deadletter list pageviews\n  kappactl deadletter list pageviews v2 --limit 10 -o json",
	}, func(cmd *cobra.Command) error { return run(cmd.Context(), o) })
}

// some makes cmd one about the dead letters of JOB [VERSION], at most --limit of them.
func (o *deadletterOptions) some(cmd *cobra.Command, run func(*cobra.Command) error) *cobra.Command {
	cmd.Args = between([]string{"JOB"}, []string{"VERSION"})
	cmd.RunE = o.target.then(func(cmd *cobra.Command) error {
		if o.limit < 1 {
			return usage(cmd, "--limit is at least 1")
		}
		return run(cmd)
	})
	cmd.Flags().IntVar(&o.limit, "limit", 100, "at most `N` records")
	return cmd
}

func newDeadletterShow(a *app, run func(context.Context, deadletterOptions) error) *cobra.Command {
	o := deadletterOptions{app: a, limit: 1}
	return &cobra.Command{
		Use:     "show JOB [VERSION] TOPIC/PARTITION@OFFSET",
		Short:   "Show one record that could not be processed, with its value",
		Long:    "Show a dead letter with what is kept of its key and value: up to 4 KiB of the value. Bytes that are no text are shown in hex.",
		Example: "  kappactl deadletter show pageviews pageviews/0@1842",
		Args:    between([]string{"JOB", "TOPIC/PARTITION@OFFSET"}, []string{"VERSION"}),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			last := args[len(args)-1]
			p, ok := parsePlace(last)
			if !ok {
				return usage(cmd, "%q is not TOPIC/PARTITION@OFFSET", last)
			}
			o.place = &p
			if o.target, err = parseTarget(cmd, args[:len(args)-1]); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
}

// deadLetter is a dead letter as it is printed. key and value are texts when they are UTF-8, hex otherwise.
type deadLetter struct {
	Record     string     `json:"record"` // topic/partition@offset
	Topic      string     `json:"topic"`
	Partition  int32      `json:"partition"`
	Offset     int64      `json:"offset"`
	RecordTime *time.Time `json:"record_time"`
	Reason     string     `json:"reason"`
	Detail     string     `json:"detail"`
	Size       int64      `json:"size"`
	At         time.Time  `json:"at"`
	Key        *string    `json:"key"`
	Value      *string    `json:"value"`
	Encoding   string     `json:"encoding"` // utf8 or hex, of the value
	Whole      bool       `json:"whole"`
}

func newDeadLetter(d speedlayer.DeadLetter) deadLetter {
	out := deadLetter{
		Record: d.Place(), Topic: d.Partition.Topic, Partition: d.Partition.ID, Offset: d.Offset, RecordTime: d.RecordTime,
		Reason: d.Reason,
		Detail: d.Detail, Size: d.Size, At: d.At, Whole: d.Whole(),
	}
	out.Key, _ = bytesText(d.Key)
	out.Value, out.Encoding = bytesText(d.Payload)
	return out
}

// bytesText is bytes for people: a last character that was cut in half is left out.
func bytesText(b []byte) (text *string, encoding string) {
	if b == nil {
		return nil, "utf8"
	}
	for cut := range 4 {
		if n := len(b) - cut; n >= 0 && utf8.Valid(b[:n]) {
			s := string(b[:n])
			return &s, "utf8"
		}
	}
	s := hex.EncodeToString(b)
	return &s, "hex"
}

// letters reads what is asked for, and of which version it is.
func (o deadletterOptions) letters(ctx context.Context, c *client) (job.Ref, []speedlayer.DeadLetter, error) {
	ref, err := c.shown(ctx, o.target)
	if err != nil {
		return ref, nil, err
	}
	var store speedlayer.Store
	if o.place == nil {
		found, err := store.DeadLetters(ctx, c.pool, ref, o.limit)
		return ref, found, err
	}
	found, err := store.DeadLetterAt(ctx, c.pool, ref, o.place.topic, o.place.partition, o.place.offset)
	if err == nil && len(found) == 0 {
		err = &job.Refusal{
			Code: job.ExitUsage, Cause: fmt.Sprintf("%s/%d@%d is no dead letter of %s", o.place.topic, o.place.partition,
				o.place.offset, ref),
			Next: fmt.Sprintf("kappactl deadletter list %s %s", ref.Job, ref.Number),
		}
	}
	return ref, found, err
}

// shown is the version asked for, else the live one, else the newest.
func (c *client) shown(ctx context.Context, t target) (job.Ref, error) {
	status, err := c.store.Status(ctx, t.Job)
	if err != nil {
		return job.Ref{}, err
	}
	switch {
	case t.Number != nil:
		_, err := versionOf(status, *t.Number)
		return job.Ref{Job: t.Job, Number: *t.Number}, err
	case status.Live != nil:
		n, err := job.ParseNumber(*status.Live)
		return job.Ref{Job: t.Job, Number: n}, err
	case len(status.Versions) == 0:
		return job.Ref{}, &job.Refusal{
			Code: job.ExitConflict, Cause: fmt.Sprintf("job %q has no version", t.Job),
			Next: "kappactl deploy FILE",
		}
	}
	n, err := job.ParseNumber(status.Versions[0].Version)
	return job.Ref{Job: t.Job, Number: n}, err
}

func runDeadletterList(ctx context.Context, o deadletterOptions) error {
	c, err := o.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	ref, found, err := o.letters(ctx, c)
	if err != nil {
		return err
	}
	out := make([]deadLetter, len(found))
	for i, d := range found {
		out[i] = newDeadLetter(d)
	}
	if len(out) == o.limit {
		o.progress("the first %d dead letters of %s: --limit takes more", o.limit, ref)
	}
	return o.result(out, func(w io.Writer) error {
		t := render.NewTable("record", "reason", "detail", "bytes", "at")
		for _, d := range out {
			t.Add(render.Text(d.Record), render.Text(d.Reason), render.Text(d.Detail),
				render.Text(strconv.FormatInt(d.Size, 10)), render.Text(d.At.Format(time.RFC3339)))
		}
		return t.Write(w, o.style())
	})
}

func runDeadletterShow(ctx context.Context, o deadletterOptions) error {
	c, err := o.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	_, found, err := o.letters(ctx, c)
	if err != nil {
		return err
	}
	d := newDeadLetter(found[0])
	return o.result(d, func(w io.Writer) error {
		kept := fmt.Sprintf("%d bytes", d.Size)
		if !d.Whole {
			kept += fmt.Sprintf(", the first %d are kept", len(found[0].Payload))
		}
		_, err := fmt.Fprintf(w, "record  %s\nreason  %s: %s\nkey     %s\nvalue   (%s, %s)\n%s\n", d.Record, d.Reason,
			d.Detail,
			job.Printable(known(d.Key)), kept, d.Encoding, job.Printable(known(d.Value)))
		return err
	})
}
