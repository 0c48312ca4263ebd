package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/config"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/law"
	"github.com/kappactl/kappactl/internal/query"
	"github.com/kappactl/kappactl/internal/sample"
)

const (
	// lawSample is how many of the oldest and how many of the newest records the law is tried on.
	lawSample = 2000
	// lawPatience is how long check waits for a server that does not answer before it does without.
	lawPatience = 4 * time.Second
)

// The words of check's "law".
const (
	lawHolds      = "holds"
	lawBroken     = "broken"
	lawNotChecked = "not checked"
)

// proof is what is known about the law for one job file.
type proof struct {
	// Records says where the records came from: "topic" or "generated".
	Records string `json:"records_from"`
	// Reason says why the law was not checked, or why the records were generated.
	Reason string `json:"reason"`
	*law.Report
	err error // why it was not checked
}

// words are proof for people.
func (p proof) words(state string) string {
	if p.Report == nil {
		return fmt.Sprintf("%s: %s", state, p.Reason)
	}
	from := "of the topic"
	if p.Records != "topic" {
		from = "generated (" + p.Reason + ")"
	}
	return fmt.Sprintf("%s: %d records %s, %d rows, %d random splits, --seed %d", state, p.Report.Records, from, p.Rows, p.Rounds, p.Seed)
}

// prove tries the law on records of the topic, or on generated ones, in the database of the settings. What makes it
// impossible is in the proof; the error is that of a query which fails on records of the topic, or of SQL that PostgreSQL refuses.
func (o checkOptions) prove(ctx context.Context, c *compiled) (state string, p proof, err error) {
	impossible := func(err error) (string, proof, error) {
		return lawNotChecked, proof{Reason: oneLine(err), err: err}, nil
	}
	settings, err := o.settings()
	if err != nil {
		return impossible(err)
	}
	short, cancel := context.WithTimeoutCause(ctx, lawPatience, errTimeout)
	defer cancel()
	pool, err := o.connect(short, settings)
	if err != nil {
		return impossible(err)
	}
	defer pool.Close()
	records, why := o.sampled(ctx, settings, c.spec)
	p = proof{Records: "topic", Reason: why}
	if len(records) == 0 {
		p.Records = "generated"
		if records, err = law.Generate(c.spec, lawSample, o.seed); err != nil {
			return impossible(err)
		}
	}
	report, err := law.Check(ctx, merging(pool), c.spec, c.query, records, law.Options{Seed: o.seed})
	var failed *query.ExecError
	var refused *law.ServeError
	switch {
	case errors.As(err, &refused):
		p.Reason = refused.Error()
		return lawNotChecked, p, &job.Refusal{Code: job.ExitUsage, Cause: refused.Error(), Next: "correct it in " + o.file, Err: err}
	case errors.As(err, &failed) && p.Records == "topic":
		cause, _, _ := strings.Cut(oneLine(failed), " LINE 1:")
		return lawBroken, p, &job.Refusal{Code: job.ExitChecks, Cause: "the query (DuckDB SQL) fails on records of the topic: " + cause, Next: "correct query in " + o.file, Err: err}
	case errors.As(err, &failed):
		return impossible(fmt.Errorf("there are no records to try it on (%s), and the query fails on generated ones", why))
	case err != nil:
		return impossible(err)
	}
	p.Report = &report
	if !report.Holds {
		return lawBroken, p, nil
	}
	if len(report.Checks) > 0 {
		return lawHolds, p, withNext(report.Checks, "kappactl check "+o.file)
	}
	return lawHolds, p, nil
}

// sampled are the oldest and the newest records of the topics; without any it says why.
func (o checkOptions) sampled(ctx context.Context, s config.Settings, spec *job.Spec) ([]*kgo.Record, string) {
	brokers, err := kafkaConfig(ctx, s)
	if err != nil {
		return nil, oneLine(err)
	}
	admin, err := kafka.NewAdmin(brokers)
	if err != nil {
		return nil, oneLine(err)
	}
	defer admin.Close()
	short, cancel := context.WithTimeoutCause(ctx, lawPatience, errTimeout)
	defer cancel()
	facts, err := admin.Offsets(short, spec.Source.Topics)
	if err != nil && short.Err() != nil {
		return nil, fmt.Sprintf("the brokers did not answer in %s", lawPatience)
	}
	if err != nil {
		return nil, oneLine(err)
	}
	var ranges []job.Frozen
	for _, f := range facts {
		if f.Err == nil && f.Start < f.LastStable {
			ranges = append(ranges, job.Frozen{Partition: f.Partition, Range: job.Range{From: f.Start, To: f.LastStable}, LeaderEpoch: f.LeaderEpoch})
		}
	}
	if len(ranges) == 0 {
		return nil, "the topic holds no records"
	}
	reader, err := sample.NewReader(brokers, o.sys.Now)
	if err != nil {
		return nil, oneLine(err)
	}
	defer reader.Close()
	oldest, err := reader.Oldest(ctx, ranges, lawSample)
	if err != nil && len(sample.Records(oldest)) == 0 {
		return nil, oneLine(err)
	}
	newest, err := reader.Newest(ctx, ranges, lawSample)
	if err != nil {
		o.log().Debug("sample the newest records", "cause", err)
	}
	if records := sample.Records(oldest, newest); len(records) > 0 {
		return records, ""
	}
	return nil, "the topic holds no records"
}

// lawExample is the first row of a failure, for people.
func lawExample(f *law.Failure) string {
	d := f.Differences[0]
	switch {
	case d.Got == nil:
		return rowText(d.Key) + " is missing"
	case d.Want == nil:
		return rowText(d.Key) + " should not be there"
	}
	return fmt.Sprintf("%s: want %s, got %s", rowText(d.Key), rowText(d.Want), rowText(d.Got))
}
