package estimate

import (
	"context"
	"fmt"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/mergecheck"
	"github.com/kappactl/kappactl/internal/query"
	"github.com/kappactl/kappactl/internal/sample"
	"github.com/kappactl/kappactl/reprocess/plan"
)

const (
	// most is how many records a sample measures at most; a topic of no more is measured whole.
	most = 200_000
	// places is at how many places of all partitions a larger topic is sampled, between leastPlaces and mostPlaces for
	// each partition. More places mix records of more times, and take more fetches.
	places      = 256
	leastPlaces = 4
	mostPlaces  = 64
	// mostBytes bounds the memory of a sample.
	mostBytes = 128 << 20
	// probe is how many records are read to learn how large records are.
	probe = 400
)

// Sources holds the topics, the archive and the query that a sample is read and measured with.
type Sources struct {
	Brokers kafka.Config
	Merging func(context.Context) mergecheck.Deps
	// Archive makes a reader read the archive as well; nil when the job does not read it.
	Archive func(*sample.Reader)
	// InLog returns the part of ranges that the logs hold.
	InLog func(ctx context.Context, ranges []job.Frozen) ([]job.Frozen, error)
	Now   func() time.Time
}

// Sampling reads samples of what a plan replays. Close it.
type Sampling struct {
	*sample.Reader
	from   Sources
	plan   plan.Deploy
	frozen []job.Frozen   // the part of the plan's ranges that can be read from here
	oldest []sample.Piece // probe records
}

// NewSampling opens a reader and reads the oldest records. Where the files of the archive are out of reach, it reads
// what the logs hold.
func NewSampling(ctx context.Context, from Sources, p plan.Deploy) (*Sampling, error) {
	s := &Sampling{from: from, plan: p, frozen: p.Frozen}
	err := s.probe(ctx, from.Archive)
	if err != nil && from.Archive != nil && ctx.Err() == nil {
		if s.frozen, err = from.InLog(ctx, p.Frozen); err == nil {
			err = s.probe(ctx, nil)
		}
	}
	return s, err
}

func (s *Sampling) probe(ctx context.Context, archive func(*sample.Reader)) (err error) {
	if s.Reader, err = sample.NewReader(s.from.Brokers, s.from.Now); err != nil {
		return err
	}
	if archive != nil {
		archive(s.Reader)
	}
	if s.oldest, err = s.Oldest(ctx, s.frozen, probe); err != nil {
		s.Close()
	}
	return err
}

// Measure runs the query on a sample, merges it in PostgreSQL, and extends what that took to all records.
func (s *Sampling) Measure(ctx context.Context, spec *job.Spec, q *query.Compiled, r *Replay) error {
	pieces, whole, err := s.pieces(ctx)
	if err != nil {
		return err
	}
	m, err := mergecheck.Measure(ctx, s.from.Merging(ctx), spec, q, parts(pieces), s.from.Now)
	if err != nil {
		return fmt.Errorf("measure a sample of %s: %w", spec.Job, err)
	}
	r.fill(spec, s.plan, extend(s.plan.Frozen, pieces), m, whole)
	return nil
}

// pieces reads everything when that is little, else pieces spread over the ranges.
func (s *Sampling) pieces(ctx context.Context) (pieces []sample.Piece, whole bool, err error) {
	t := extend(s.plan.Frozen, s.oldest)
	readable := plan.Deploy{Frozen: s.frozen}.Offsets()
	budget := int64(most)
	if t.records > 0 && t.bytes > 0 {
		budget = min(budget, max(1, int64(mostBytes/(t.bytes/t.records))))
	}
	if readable <= budget {
		pieces, err = s.Spread(ctx, s.frozen, 1, int(readable))
		return pieces, readable == s.plan.Offsets(), err
	}
	partitions := max(1, len(s.frozen))
	each := min(mostPlaces, max(leastPlaces, places/partitions))
	pieces, err = s.Spread(ctx, s.frozen, each, max(1, int(budget)/(each*partitions)))
	return pieces, false, err
}
