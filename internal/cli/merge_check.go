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
	"github.com/kappactl/kappactl/internal/mergecheck"
	"github.com/kappactl/kappactl/internal/query"
	"github.com/kappactl/kappactl/internal/render"
)

const (
	// mergeCheckRecords is how many of the oldest and how many of the newest records the merge check reads.
	mergeCheckRecords = 2000
	// mergeCheckConnect bounds how long check waits for PostgreSQL and for the brokers.
	mergeCheckConnect = 4 * time.Second
)

// The results of a merge check.
const (
	mergePassed = "passed"
	mergeFailed = "failed"
	mergeNotRun = "not run"
)

// mergeCheck is the outcome of the merge check of one job file.
type mergeCheck struct {
	Result string `json:"result"`
	// RecordsFrom is "topic" or "generated"; empty if the check did not run.
	RecordsFrom string `json:"records_from"`
	// Reason explains why the check did not run, or why its records were generated.
	Reason string `json:"reason"`
	*mergecheck.Report
	err error // why the check did not run
}

// words renders the outcome for people.
func (m mergeCheck) words() string {
	if m.Report == nil {
		return m.Result + ": " + m.Reason
	}
	records := render.Plural(int64(m.Records), "record") + " of the topic"
	if m.RecordsFrom != "topic" {
		records = render.Plural(int64(m.Records), "generated record") + ": " + m.Reason
	}
	text := fmt.Sprintf("%s (%s; %s, %s; repeat with --seed %d)", m.Result, records,
		render.Plural(int64(m.Rows), "row"), render.Plural(int64(m.Rounds), "random split"), m.Seed)
	if m.Rejected > 0 {
		text += fmt.Sprintf("\n  %s would become dead letters:", render.Plural(int64(m.Rejected), "record"))
		for _, l := range m.DeadLetters {
			text += fmt.Sprintf("\n  %s/%d@%d  %s: %s", l.Topic, l.Partition, l.Offset, l.Reason, l.Detail)
		}
		if more := m.Rejected - len(m.DeadLetters); more > 0 {
			text += fmt.Sprintf("\n  and %d more", more)
		}
	}
	return text
}

// notRun is the outcome of a merge check that could not run.
func notRun(err error) mergeCheck {
	return mergeCheck{Result: mergeNotRun, Reason: oneLine(err), err: err}
}

// mergeCheck runs the merge check in the configured database: on records of the topic, or on generated ones if it has
// none. A missing or unreachable server is reported in the outcome. The error is a fault of the job file: a query that
// fails on records of the topic, or SQL that PostgreSQL refuses.
func (o checkOptions) mergeCheck(ctx context.Context, c *compiled) (mergeCheck, error) {
	settings, err := o.settings()
	if err != nil {
		return notRun(err), nil
	}
	short, cancel := context.WithTimeoutCause(ctx, mergeCheckConnect, errTimeout)
	defer cancel()
	pool, err := o.connect(short, settings)
	if err != nil {
		return notRun(err), nil
	}
	defer pool.Close()
	deps := merging(ctx, pool)
	var confined job.Problems
	if err := mergecheck.Confine(ctx, deps, c.spec, c.query); errors.As(err, &confined) {
		m := mergeCheck{Result: mergeNotRun, Reason: "serve.columns or serve.where reach beyond the job"}
		return m, withNext(confined, "kappactl check "+o.file.String())
	}
	if c.spec.Engine != job.SQL {
		return mergeCheck{Result: mergeNotRun, Reason: "there is no query: a program computes the results"}, nil
	}
	records, why := o.sampled(ctx, settings, c.spec)
	m := mergeCheck{RecordsFrom: "topic", Reason: why}
	if len(records) == 0 {
		m.RecordsFrom = "generated"
		if records, err = mergecheck.Generate(c.spec, mergeCheckRecords, o.seed); err != nil {
			return notRun(err), nil
		}
	}
	report, err := mergecheck.Check(ctx, deps, c.spec, c.query, records,
		mergecheck.Options{Seed: o.seed, Rounds: o.rounds})
	if err != nil {
		return o.unfinished(m, err)
	}
	m.Report = &report
	return o.finished(m)
}

// unfinished is the outcome of a merge check that ended with an error.
func (o checkOptions) unfinished(m mergeCheck, err error) (mergeCheck, error) {
	var failed *query.ExecError
	var refused *mergecheck.ServeError
	switch {
	case errors.As(err, &refused):
		m.Result, m.Reason = mergeNotRun, refused.Error()
		return m, &job.Refusal{Code: job.ExitUsage, Cause: refused.Error(), Next: "correct it in " + o.file.path, Err: err}
	case errors.As(err, &failed) && m.RecordsFrom == "topic":
		cause, _, _ := strings.Cut(oneLine(failed), " LINE 1:")
		m.Result = mergeFailed
		return m, &job.Refusal{
			Code: job.ExitChecks, Cause: "the query (DuckDB SQL) fails on records of the topic: " + cause,
			Next: "correct query in " + o.file.path, Err: err,
		}
	case errors.As(err, &failed):
		return notRun(fmt.Errorf("no records of the topic are available (%s), and the query fails on generated ones",
			m.Reason)), nil
	}
	return notRun(err), nil
}

// finished is the outcome of a merge check that compared all its splits or found one that differs.
func (o checkOptions) finished(m mergeCheck) (mergeCheck, error) {
	m.Result = mergePassed
	if !m.Passed {
		m.Result = mergeFailed
		return m, nil
	}
	if first, all := m.AllFail(); all && m.RecordsFrom == "topic" {
		m.Result = mergeFailed
		return m, &job.Refusal{
			Code:  job.ExitChecks,
			Cause: fmt.Sprintf("the query (DuckDB SQL) fails on all %d sampled records of the topic: %s", m.Records, first),
			Next:  "correct query in " + o.file.path,
		}
	}
	if len(m.Checks) > 0 {
		return m, withNext(m.Checks, "kappactl check "+o.file.String())
	}
	return m, nil
}

// sampled returns the oldest and the newest records of the topics, or why there are none.
func (o checkOptions) sampled(ctx context.Context, s config.Settings, spec *job.Spec) ([]*kgo.Record, string) {
	records, err := o.recordsOf(ctx, s, spec.Source.Topics)
	if errors.Is(err, errSilent) {
		return nil, fmt.Sprintf("the brokers did not answer within %s", mergeCheckConnect)
	}
	if err != nil {
		return nil, oneLine(err)
	}
	return records, ""
}

// firstDifference describes the first row of a failure that differs.
func firstDifference(f *mergecheck.Failure) string {
	d := f.Differences[0]
	switch {
	case d.Got == nil:
		return rowText(d.Key) + " is missing"
	case d.Want == nil:
		return rowText(d.Key) + " should not be there"
	}
	return fmt.Sprintf("%s: want %s, got %s", rowText(d.Key), rowText(d.Want), rowText(d.Got))
}
