package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/mergecheck"
	"github.com/kappactl/kappactl/internal/query"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/internal/sample"
	"github.com/kappactl/kappactl/speedlayer"
)

func newDeadletterRetry(a *app, run func(context.Context, deadletterOptions) error) *cobra.Command {
	o := deadletterOptions{app: a}
	cmd := o.some(&cobra.Command{
		Use:   "retry JOB [VERSION]",
		Short: "Try dead letters again, with a corrected job file, and say which would pass",
		Long: `Try the dead letters of a version on the job file given with --file, or on that of the version, and say of each whether it
would be processed now. Values of which only the first bytes are kept are read from the log, as long as it holds them.

Nothing is added to the version: its table is the query over the records that it could process, up to its positions, and verify
checks exactly that. A record that is counted in later would be counted twice by nobody noticing, or missing from the next replay.
The way in is a deploy of the corrected file: it replays the log, dead letters and all, and the view flips to the result.
It ends with 5 when some would fail again.`,
		Example: "  kappactl deadletter retry pageviews --file fixed.yaml",
	}, func(cmd *cobra.Command) error { return run(cmd.Context(), o) })
	o.file.flags(cmd.Flags())
	cmd.Flags().StringVar(&o.file.path, "file", "", "the corrected job `FILE` (default: the version's own)")
	return cmd
}

// The outcomes of a retry.
const (
	wouldPass    = "passes"
	wouldFail    = "fails"
	cannotBeSaid = "unknown"
)

// retried is the result of a retry for one dead letter.
type retried struct {
	Record  string `json:"record"`
	Outcome string `json:"outcome"` // passes, fails or unknown
	Reason  string `json:"reason"`
}

type retryResult struct {
	Job     job.Name  `json:"job"`
	Version string    `json:"version"`
	Passes  int       `json:"passes"`
	Fails   int       `json:"fails"`
	Unknown int       `json:"unknown"`
	Records []retried `json:"records"`
	Next    string    `json:"next"`
}

func runDeadletterRetry(ctx context.Context, o deadletterOptions) (err error) {
	c, err := o.client(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	ref, found, err := o.letters(ctx, c)
	if err != nil {
		return err
	}
	file, err := o.jobFile(ctx, c, ref)
	if err != nil {
		return err
	}
	runner, err := mergecheck.NewRunner(ctx, file.spec, file.query)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, runner.Close()) }()
	result := retryResult{Job: ref.Job, Version: ref.Number.String(), Records: []retried{}}
	for _, d := range found {
		r, err := o.retry(ctx, c, runner, d)
		if err != nil {
			return err
		}
		result.add(r)
	}
	if result.Passes > 0 && o.file.path != "" {
		result.Next = "kappactl deploy " + o.file.String()
	}
	var failed error
	if result.Fails+result.Unknown > 0 {
		failed = &job.Refusal{
			Code: job.ExitChecks, Cause: fmt.Sprintf("%d of %s would not pass", result.Fails+result.Unknown,
				render.Plural(int64(len(found)), "dead letter")),
			Next: "correct the columns or the query, then: kappactl deadletter retry " + string(ref.Job) + " --file FILE",
		}
	}
	return o.outcome(ctx, result, func(w io.Writer) error { return result.print(w, o.style()) }, failed)
}

func (r *retryResult) add(one retried) {
	r.Records = append(r.Records, one)
	switch one.Outcome {
	case wouldPass:
		r.Passes++
	case wouldFail:
		r.Fails++
	default:
		r.Unknown++
	}
}

func (r retryResult) print(w io.Writer, style render.Style) error {
	t := render.NewTable("record", "outcome", "reason")
	for _, one := range r.Records {
		t.Add(render.Text(one.Record), render.Text(one.Outcome), render.Text(one.Reason))
	}
	if err := t.Write(w, style); err != nil {
		return err
	}
	if r.Next == "" || !style.People {
		return nil
	}
	_, err := fmt.Fprintf(w, "\nnext: %s   # replays the log with them\n", r.Next)
	return err
}

// jobFile is the file given, else that of the version.
func (o deadletterOptions) jobFile(ctx context.Context, c *client, ref job.Ref) (*compiled, error) {
	if o.file.path != "" {
		return o.compile(ctx, o.file)
	}
	if len(o.file.set) > 0 || o.file.vars != "" {
		return nil, &job.Refusal{
			Code: job.ExitUsage, Cause: "--set and --vars give variables of the file of --file; a version's own file has its values",
			Next: "add --file FILE, or leave them out",
		}
	}
	spec, err := c.store.Spec(ctx, ref)
	if err != nil {
		return nil, err
	}
	q, err := query.Compile(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &compiled{spec: spec, query: q, hash: spec.Hash(query.Dialect)}, nil
}

// retry tries one dead letter: first the decoder, then the query over it alone.
func (o deadletterOptions) retry(ctx context.Context, c *client, r *mergecheck.Runner,
	d speedlayer.DeadLetter,
) (retried, error) {
	out := retried{Record: d.Place(), Outcome: cannotBeSaid}
	rec, err := o.record(ctx, c, d, d.RecordTime == nil || r.Reads("_headers"))
	if err != nil || rec == nil {
		out.Reason = fmt.Sprintf("only %d of %d bytes are kept, and the log does not give the record any more",
			len(d.Payload), d.Size)
		return out, err
	}
	_, bad, err := r.Judge(ctx, []*kgo.Record{rec})
	if err != nil {
		return out, err
	}
	if len(bad) > 0 {
		out.Outcome, out.Reason = wouldFail, bad[0].Error()
		return out, nil
	}
	var failed *query.ExecError
	switch err := r.Try(ctx, rec); {
	case errors.As(err, &failed):
		cause, _, _ := strings.Cut(oneLine(failed), " LINE 1:")
		out.Outcome, out.Reason = wouldFail, cause
	case err != nil:
		return out, err
	default:
		out.Outcome = wouldPass
	}
	return out, nil
}

// record is the dead letter as it is kept when that is all of it, else as the log has it; nil when neither is. Headers,
// and times that nobody believes, are in the log only: with those asked for it comes first.
func (o deadletterOptions) record(ctx context.Context, c *client, d speedlayer.DeadLetter, fromLog bool) (*kgo.Record,
	error,
) {
	kept := &kgo.Record{
		Topic: d.Partition.Topic, Partition: d.Partition.ID, Offset: d.Offset, Key: d.Key,
		Value: d.Payload,
	}
	if d.RecordTime != nil {
		kept.Timestamp = *d.RecordTime
	}
	if d.Whole() && !fromLog {
		return kept, nil
	}
	brokers, err := kafkaConfig(ctx, c.settings)
	if err != nil {
		return nil, err
	}
	reader, err := sample.NewReader(brokers, o.sys.Now)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	pieces, err := reader.Oldest(ctx, []job.Frozen{{
		Partition: d.Partition,
		Range:     job.Range{From: d.Offset, To: d.Offset + 1}, LeaderEpoch: -1,
	}}, 1)
	if records := sample.Records(pieces); len(records) == 1 {
		return records[0], nil
	}
	if d.Whole() && err == nil {
		return kept, nil
	}
	return nil, err
}
