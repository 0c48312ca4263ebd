package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kappactl/kappactl/examples"
	"github.com/kappactl/kappactl/internal/format"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/job/strict"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/internal/scaffold"
)

type newOptions struct {
	*app
	name    job.Name
	topic   string
	view    string
	example string
	file    string // empty: NAME.yaml
	mask    bool
}

func newNew(a *app, run func(context.Context, newOptions) error) *cobra.Command {
	o := newOptions{app: a}
	cmd := &cobra.Command{
		Use:   "new JOB",
		Short: "Write a job file from the records of a topic, or from an example",
		Long: `Read the 2,000 oldest and the 2,000 newest records of a topic and write JOB.yaml: a column with its type for each field, also for
nested ones, a first query that counts records by a field and an hour or day, a check, the view, and a test made of two records of
the topic. Types are those with which every sampled record can be read: fields of several types and lists become jsonb. Records may
be JSON objects, rows of CSV, whose first record may hold the names of the columns, or anything else that is text. For envelopes
of Debezium the query counts the rows of the table: each change takes the row before it off and adds the row after it. The file
passes test and check as written.

The test holds two real records. --mask replaces their letters and digits, and leaves times, field names and shapes.

--example writes one of the examples instead. A file that exists is never replaced.`,
		Example: "  kappactl new orders --topic shop.orders\n  kappactl new orders --topic shop.orders --view reports.orders_daily --mask\n" +
			"  kappactl new --example pageviews",
		Args: between(nil, []string{"JOB"}),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.arguments(cmd, args); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.topic, "topic", "", "read the records of this `TOPIC` (default: the topic with the job's name)")
	f.StringVar(&o.view, "view", "",
		"serve the results in the view `SCHEMA.NAME` (default: public.JOB_hourly or the like)")
	f.StringVar(&o.example, "example", "", "write the example `NAME`: "+strings.Join(exampleNames(), ", "))
	f.StringVar(&o.file, "file", "", "write to this `FILE`; - is the output stream (default: JOB.yaml)")
	f.BoolVar(&o.mask, "mask", false, "replace letters and digits of the records in the test")
	complete(cmd, "example", func(*cobra.Command) []string { return exampleNames() })
	return cmd
}

// arguments checks that the command line names a job or an example.
func (o *newOptions) arguments(cmd *cobra.Command, args []string) error {
	if o.example != "" {
		if len(args) > 0 || o.topic != "" || o.view != "" || o.mask {
			return usage(cmd, "--example takes neither JOB nor --topic, --view or --mask: edit the file that it writes")
		}
		return nil
	}
	if len(args) == 0 {
		return usage(cmd, "missing argument JOB, or --example NAME")
	}
	t, err := parseTarget(cmd, args)
	if err != nil {
		return err
	}
	if t.Number != nil {
		return usage(cmd, "a new job has no version")
	}
	if o.name = t.Job; o.topic == "" {
		o.topic = string(t.Job)
	}
	if o.view != "" {
		if _, err := job.ParseViewName(o.view); err != nil {
			cause, cure := strict.Explain(err)
			return usage(cmd, "--view: %s; %s", cause, cure)
		}
	}
	return nil
}

// exampleNames are the names of the examples.
func exampleNames() []string {
	paths, err := fs.Glob(examples.Files, "*.yaml")
	if err != nil {
		return nil // the pattern is valid
	}
	for i := range paths {
		paths[i] = strings.TrimSuffix(paths[i], ".yaml")
	}
	return paths
}

// newResult is the output of new.
type newResult struct {
	Job        job.Name    `json:"job"`
	File       string      `json:"file"`
	Topic      string      `json:"topic"`
	View       string      `json:"view"`
	Format     string      `json:"format"`
	Columns    []newColumn `json:"columns"`
	Records    int         `json:"records"` // in the sample
	Tombstones int         `json:"tombstones"`
	Rejected   int         `json:"rejected"`
	Next       string      `json:"next"`
}

type newColumn struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Unit string `json:"unit"`
	Path string `json:"path"`
}

func runNew(ctx context.Context, o newOptions) error {
	if o.example != "" {
		return o.fromExample()
	}
	if o.file == "" {
		o.file = string(o.name) + ".yaml"
	}
	if err := o.vacant(); err != nil {
		return err
	}
	settings, err := o.settings()
	if err != nil {
		return err
	}
	records, err := o.recordsOf(ctx, settings, []string{o.topic})
	if err != nil {
		return o.unread(err)
	}
	draft, err := scaffold.New(ctx, records, scaffold.Options{Job: o.name, Topic: o.topic, View: o.view, Mask: o.mask})
	if err != nil {
		return o.unread(err)
	}
	r := newResult{
		Job: o.name, Topic: o.topic, View: draft.View, Format: draft.Format, Columns: []newColumn{}, Records: draft.Records,
		Tombstones: draft.Tombstones, Rejected: draft.Rejected,
	}
	for _, c := range draft.Columns {
		r.Columns = append(r.Columns, newColumn{c.Name, c.Type, c.Unit, c.Path})
	}
	if draft.Rejected > 0 {
		o.progress("warning: %s of the sample would become dead letters; the first: %s",
			render.Plural(int64(draft.Rejected), "record"), draft.First)
	}
	return o.written(r, draft.Text)
}

// unread explains why there is no sample to write a job file from.
func (o newOptions) unread(err error) error {
	var missing *kafka.MissingTopicError
	var reject *format.Reject
	next := fmt.Sprintf("write records to it and run this again; or kappactl new --example %s", exampleNames()[0])
	switch {
	case errors.As(err, &missing):
		return &job.Refusal{
			Code: job.ExitUsage, Cause: missing.Error(), Next: "correct --topic; completion lists the topics", Err: err,
		}
	case errors.Is(err, errNoRecords), errors.Is(err, scaffold.ErrNoRecords):
		return &job.Refusal{
			Code: job.ExitUsage, Cause: fmt.Sprintf("topic %q holds no records with a value to infer columns from", o.topic),
			Next: next, Err: err,
		}
	case errors.As(err, &reject):
		return &job.Refusal{Code: job.ExitUsage, Cause: fmt.Sprintf("topic %q: %s", o.topic, reject), Err: err}
	}
	return err
}

// fromExample writes an example.
func (o newOptions) fromExample() error {
	names := exampleNames()
	text, err := fs.ReadFile(examples.Files, o.example+".yaml")
	if err != nil {
		return &job.Refusal{
			Code: job.ExitUsage, Cause: fmt.Sprintf("there is no example %q", o.example), Err: err,
			Next: "kappactl new --example NAME   # " + strict.Suggest(o.example, names),
		}
	}
	if o.file == "" {
		o.file = o.example + ".yaml"
	}
	if err := o.vacant(); err != nil {
		return err
	}
	spec, err := job.Parse(o.example+".yaml", text)
	if err != nil {
		return err
	}
	r := newResult{
		Job: spec.Job, Topic: strings.Join(spec.Source.Topics, ","), View: spec.Serve.View.String(),
		Format:  spec.Source.Format,
		Columns: []newColumn{},
	}
	for _, c := range spec.Source.Columns {
		r.Columns = append(r.Columns, newColumn{c.Name, c.Type, c.Unit, c.Path})
	}
	return o.written(r, []byte(strings.Replace(string(text), "$schema=../docs/", "$schema=./", 1)))
}

// vacant refuses a file that exists.
func (o newOptions) vacant() error {
	if o.file == standardInput {
		return nil
	}
	if _, err := os.Lstat(o.file); err == nil {
		return o.occupied(nil)
	}
	return nil
}

func (o newOptions) occupied(err error) error {
	return &job.Refusal{
		Code: job.ExitUsage, Cause: o.file + " exists: new replaces no file", Next: "add --file with another path", Err: err,
	}
}

// written writes the file and prints what is in it.
func (o newOptions) written(r newResult, text []byte) error {
	if o.file == standardInput {
		_, err := o.sys.Out.Write(text)
		return err
	}
	f, err := os.OpenFile(o.file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // a file that people share
	if errors.Is(err, fs.ErrExist) {
		return o.occupied(err)
	}
	if err != nil {
		return &job.Refusal{
			Code: job.ExitUsage, Cause: oneLine(err),
			Next: "name a file in a folder that exists, with --file", Err: err,
		}
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	r.File = o.file
	r.Next = "kappactl check " + render.ShellWord(o.file)
	return o.result(r, r.print)
}

func (r newResult) print(w io.Writer) error {
	from := ""
	if r.Records > 0 {
		from = fmt.Sprintf(" from %s of topic %s", render.Plural(int64(r.Records), "record"), r.Topic)
	}
	_, err := fmt.Fprintf(w, "%s: job %s with %s%s, view %s\nnext: %s\n", r.File, r.Job,
		render.Plural(int64(len(r.Columns)), "column"), from, r.View, r.Next)
	return err
}
