package mergecheck

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/query"
)

// Rounds is the default number of random splits.
const Rounds = 30

// maxParts is the largest number of parts in one split.
const maxParts = 8

// Options sets how many splits are tried and their seed. Rounds 0 means the default.
type Options struct {
	Rounds int
	Seed   uint64
}

// Report is the result of a merge check.
type Report struct {
	Passed      bool         `json:"-"` // every split gave the result of the query run once
	Rounds      int          `json:"rounds"`
	Seed        uint64       `json:"seed"`
	Records     int          `json:"records"`
	Rejected    int          `json:"rejected"`     // number of records that would become dead letters
	DeadLetters []DeadLetter `json:"dead_letters"` // the first of them
	Rows        int          `json:"rows"`         // number of result rows of the query run once
	Failure     *Failure     `json:"failure"`
	// Types holds the types of the view's columns by name, as PostgreSQL reports them.
	Types map[string]string `json:"-"`
	// Checks holds the problems found in the SQL of the job's checks.
	Checks job.Problems `json:"-"`
}

// DeadLetter is a record that would become a dead letter.
type DeadLetter struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	Reason    string `json:"reason"`
	Detail    string `json:"detail"`
}

// maxDeadLetters is the largest number of dead letters that a report lists.
const maxDeadLetters = 5

func deadLetters(bad []Rejected) []DeadLetter {
	out := []DeadLetter{}
	for _, b := range bad[:min(len(bad), maxDeadLetters)] {
		out = append(out, DeadLetter{b.Record.Topic, b.Record.Partition, b.Record.Offset, b.Reason, b.Detail})
	}
	return out
}

// AllFail reports whether every record is rejected and at least one of them by the query, and returns the error of the
// first such record.
func (r Report) AllFail() (first string, all bool) {
	if r.Records == 0 || r.Rejected < r.Records {
		return "", false
	}
	for _, l := range r.DeadLetters {
		if l.Reason == query.QueryError {
			return l.Detail, true
		}
	}
	return "", false
}

// Failure is the first split whose result differs.
type Failure struct {
	Round       int          `json:"round"`
	How         string       `json:"how"` // "live" or "replay"
	Parts       int          `json:"parts"`
	Differences []Difference `json:"differences"` // at most ten
}

// Check runs the merge check on the records. A split that differs is in the report. Errors mean that the check did not
// finish: a *query.ExecError if the query fails over records none of which fails alone, a *ServeError if PostgreSQL
// refuses SQL of serve.
func Check(ctx context.Context, d Deps, spec *job.Spec, c *query.Compiled, records []*kgo.Record,
	o Options,
) (report Report, err error) {
	if o.Rounds == 0 {
		o.Rounds = Rounds
	}
	r, err := NewRunner(ctx, spec, c)
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	good, bad, err := r.JudgeIn(ctx, d, records)
	if err != nil {
		return Report{}, err
	}
	report = Report{
		Rounds: o.Rounds, Seed: o.Seed, Records: len(records), Rejected: len(bad), DeadLetters: deadLetters(bad),
		Passed: true,
	}
	answer, err := r.audit(ctx, good)
	if err != nil {
		return Report{}, fmt.Errorf("run the query once: %w", err)
	}
	report.Rows = len(answer)
	random := rand.New(rand.NewPCG(o.Seed, 0)) //nolint:gosec // it has to be repeatable
	for round := 1; round <= o.Rounds && report.Passed; round++ {
		parts := split(random, good)
		err := d.In(ctx, r, func(b *Bench) error {
			if round == 1 {
				if report.Types, err = b.Types(ctx); err != nil {
					return err
				}
				if report.Checks, err = b.refusedChecks(ctx); err != nil {
					return err
				}
			}
			report.Failure, err = b.try(ctx, parts, answer)
			return err
		})
		if err != nil {
			return Report{}, fmt.Errorf("round %d: %w", round, err)
		}
		if report.Failure != nil {
			report.Failure.Round, report.Passed = round, false
		}
	}
	return report, nil
}

// try merges one split the way live commits do and the way a replay does, and returns the first difference, or nil.
func (b *Bench) try(ctx context.Context, parts [][]*kgo.Record, answer []Row) (*Failure, error) {
	want, err := b.Spelled(ctx, answer)
	if err != nil {
		return nil, fmt.Errorf("convert the query's rows: %w", err)
	}
	for _, part := range parts {
		if err := b.Merge(ctx, part); err != nil {
			return nil, err
		}
	}
	failure, err := b.compare(ctx, "live", len(parts), want)
	if failure != nil || err != nil {
		return failure, err
	}
	for i, part := range parts {
		if err := b.Stage(ctx, i, part); err != nil {
			return nil, err
		}
	}
	if err := b.Rebuild(ctx); err != nil {
		return nil, err
	}
	return b.compare(ctx, "replay", len(parts), want)
}

func (b *Bench) compare(ctx context.Context, how string, parts int, want []Row) (*Failure, error) {
	got, err := b.Served(ctx, false)
	if err != nil {
		return nil, fmt.Errorf("read the result: %w", err)
	}
	differences := Compare(b.columns(), want, got)
	if len(differences) == 0 {
		return nil, nil
	}
	return &Failure{How: how, Parts: parts, Differences: differences[:min(len(differences), maxDifferences)]}, nil
}

// split shuffles the records and distributes them over a random number of parts. Parts may be empty.
func split(r *rand.Rand, records []*kgo.Record) [][]*kgo.Record {
	parts := make([][]*kgo.Record, 1+r.IntN(maxParts))
	for _, i := range r.Perm(len(records)) {
		p := r.IntN(len(parts))
		parts[p] = append(parts[p], records[i])
	}
	return parts
}
