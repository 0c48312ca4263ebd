package law

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/query"
)

// Rounds is how many random splits are tried when nothing else is said.
const Rounds = 30

// maxParts and maxLanes bound what one round splits into.
const (
	maxParts = 8
	maxLanes = 4
)

// Options say how much is tried. Zero Rounds are the default.
type Options struct {
	Rounds int
	Seed   uint64
}

// Report is what was found.
type Report struct {
	Holds    bool     `json:"holds"`
	Rounds   int      `json:"rounds"`
	Seed     uint64   `json:"seed"`
	Records  int      `json:"records"`
	Rejected int      `json:"rejected"` // records that become dead letters
	Rows     int      `json:"rows"`     // that the query gives, run once
	Failure  *Failure `json:"failure"`
	// Types are those of the view's columns, as PostgreSQL gives them.
	Types map[string]string `json:"-"`
	// Checks is what is wrong with the SQL of the job's checks.
	Checks job.Problems `json:"-"`
}

// Failure is the first round that differs.
type Failure struct {
	Round       int          `json:"round"`
	How         string       `json:"how"` // live or replay
	Parts       int          `json:"parts"`
	Lanes       int          `json:"lanes"`
	Differences []Difference `json:"differences"` // ten at most
}

// Check tries the law on the records. That it does not hold is in the report; an error says that it could not be tried,
// a *query.ExecError that the query fails on these records, a *ServeError that PostgreSQL refuses SQL below serve.
func Check(ctx context.Context, d Deps, spec *job.Spec, c *query.Compiled, records []*kgo.Record, o Options) (report Report, err error) {
	if o.Rounds == 0 {
		o.Rounds = Rounds
	}
	r, err := NewRunner(ctx, spec, c)
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	good, bad, err := r.Judge(ctx, records)
	if err != nil {
		return Report{}, err
	}
	report = Report{Rounds: o.Rounds, Seed: o.Seed, Records: len(records), Rejected: len(bad), Holds: true}
	answer, err := r.audit(ctx, good)
	if err != nil {
		return Report{}, fmt.Errorf("run the query once: %w", err)
	}
	report.Rows = len(answer)
	random := rand.New(rand.NewPCG(o.Seed, 0)) //nolint:gosec // it has to be repeatable
	for round := 1; round <= o.Rounds && report.Holds; round++ {
		s := split(random, good)
		err := d.In(ctx, r, s.lanes, func(b *Bench) error {
			if round == 1 {
				if report.Types, err = b.Types(ctx); err != nil {
					return err
				}
				if report.Checks, err = b.refusedChecks(ctx); err != nil {
					return err
				}
			}
			report.Failure, err = b.try(ctx, s, answer)
			return err
		})
		if err != nil {
			return Report{}, fmt.Errorf("round %d: %w", round, err)
		}
		if report.Failure != nil {
			report.Failure.Round, report.Holds = round, false
		}
	}
	return report, nil
}

// try merges one split in both ways and compares.
func (b *Bench) try(ctx context.Context, s splitting, answer []Row) (*Failure, error) {
	want, err := b.Spelled(ctx, answer)
	if err != nil {
		return nil, fmt.Errorf("spell the query's answer: %w", err)
	}
	for _, part := range s.parts {
		if err := b.Merge(ctx, part); err != nil {
			return nil, err
		}
	}
	failure, err := b.compare(ctx, "live", s, want)
	if failure != nil || err != nil {
		return failure, err
	}
	for i, part := range s.parts {
		if err := b.Stage(ctx, i, part); err != nil {
			return nil, err
		}
	}
	if err := b.Rebuild(ctx); err != nil {
		return nil, err
	}
	return b.compare(ctx, "replay", s, want)
}

func (b *Bench) compare(ctx context.Context, how string, s splitting, want []Row) (*Failure, error) {
	got, err := b.Served(ctx, false)
	if err != nil {
		return nil, fmt.Errorf("read the result: %w", err)
	}
	differences := Compare(b.columns(), want, got)
	if len(differences) == 0 {
		return nil, nil
	}
	return &Failure{How: how, Parts: len(s.parts), Lanes: s.lanes, Differences: differences[:min(len(differences), maxDifferences)]}, nil
}

// splitting is one random way to cut records into parts.
type splitting struct {
	parts [][]*kgo.Record
	lanes int
}

// split shuffles the records and deals them to parts, some of which may be empty.
func split(r *rand.Rand, records []*kgo.Record) splitting {
	s := splitting{parts: make([][]*kgo.Record, 1+r.IntN(maxParts)), lanes: 1 + r.IntN(maxLanes)}
	for _, i := range r.Perm(len(records)) {
		p := r.IntN(len(s.parts))
		s.parts[p] = append(s.parts[p], records[i])
	}
	return s
}
