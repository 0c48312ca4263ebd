package plan

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/readiness"
)

// Survey asks about the histories of two versions of a job: what a candidate covers, and what readers would lose by its
// flip.
type Survey struct {
	DB        pg.DB
	Brokers   Brokers
	Positions Positions
	Serving   Serving // nil: keys are not counted
	Now       time.Time
}

// Outset is how a replay begins.
type Outset struct {
	Frozen   []job.Frozen
	Accepted string        // token of the loss of history that was accepted, at these very offsets
	Warning  reason.Reason // zero: none
}

// Outset holds the ranges that a staged version will replay, once no refusal by topics or the live version is left.
func (q Survey) Outset(ctx context.Context, st *ledger.State) (Outset, error) {
	facts, err := q.Brokers.Topics(ctx, st.Spec.Source.Topics)
	if err != nil {
		return Outset{}, fmt.Errorf("ask the brokers for %v: %w", st.Spec.Source.Topics, err)
	}
	for _, t := range facts {
		if t.Compacted && !st.Layout.TakesCompacted() {
			return Outset{}, compactedRefusal(t)
		}
	}
	frozen, err := ranges(ctx, q.Brokers, &st.Spec, facts, q.Now)
	if err != nil {
		return Outset{}, err
	}
	accepted, err := q.coverage(ctx, st, st.Spec.Replay.Start, starts(frozen), st.Options().AcceptShorterHistory)
	return Outset{Frozen: frozen, Accepted: accepted, Warning: nothingToReplay(st.Spec.Replay.Start, facts, frozen)}, err
}

func compactedRefusal(t job.TopicFacts) error {
	return ledger.RefuseFor(job.ExitUsage, "read a topic without cleanup.policy=compact", reason.TopicCompacted(t.Name))
}

// CoversLive refuses a candidate at these positions by whose flip readers would lose results, unless exactly that loss
// was accepted. It returns the token of the accepted loss.
func (q Survey) CoversLive(ctx context.Context, st *ledger.State, positions []job.Position, accepted string) (string,
	error,
) {
	return q.coverage(ctx, st, "", covered(positions), accepted)
}

// coverage is CoversLive for a replay that begins at these offsets. start is where it is to begin as long as they may
// still move, else empty.
func (q Survey) coverage(ctx context.Context, st *ledger.State, start string, begins []readiness.Start,
	accepted string,
) (string, error) {
	live, ref := st.LiveRef(), st.Ref()
	if live == nil || *live == ref {
		return accepted, nil
	}
	positions, err := q.liveCovers(ctx, *live, begins)
	if err != nil {
		return "", err
	}
	liveSpec, layout, err := ledger.ReadSpec(ctx, q.DB, *live)
	if err != nil {
		return "", err
	}
	_, like, err := ledger.ReadSpec(ctx, q.DB, ref)
	if err != nil {
		return "", err
	}
	if live.Adopted() {
		layout = layout.KeyedAs(like)
	}
	gaps, err := q.AcceptedGaps(ctx, *live, ref)
	if err != nil {
		return "", err
	}
	lost, err := q.compare(ctx, histories{
		live: *live, liveSpec: liveSpec, layout: layout, covered: positions, candidate: &st.Spec, begins: begins, to: like,
		gaps: gaps,
	})
	switch {
	case err != nil:
		return "", err
	case len(lost.Losses) == 0:
		return accepted, nil
	case readiness.Accepts(accepted, lost.Losses, start, q.Now):
		return readiness.Token(lost.Losses), nil
	}
	return "", lossRefusal(lost, *live, ref, start, q.Now)
}

// liveCovers is where the results of the live version begin. An adopted relation may hold results of every record that
// there ever was.
func (q Survey) liveCovers(ctx context.Context, live job.Ref, begins []readiness.Start) ([]readiness.Start, error) {
	if live.Adopted() {
		out := make([]readiness.Start, len(begins))
		for i, b := range begins {
			out[i] = readiness.Start{Partition: b.Partition}
		}
		return out, nil
	}
	p, err := q.Positions.Positions(ctx, q.DB, live)
	return covered(p), err
}

// AcceptedGaps are the accepted gaps of live and of the candidate. An adopted relation may have the results of every
// record.
func (q Survey) AcceptedGaps(ctx context.Context, live, candidate job.Ref) (readiness.Gaps, error) {
	var g readiness.Gaps
	var err error
	if g.Candidate, err = q.Positions.Gaps(ctx, q.DB, candidate); err != nil || len(g.Candidate) == 0 {
		return g, err
	}
	if live.Adopted() {
		for _, gap := range g.Candidate {
			g.Read = append(g.Read, job.PartitionRange{Partition: gap.Partition, Range: job.Range{To: math.MaxInt64}})
		}
		return g, nil
	}
	if g.Live, err = q.Positions.Gaps(ctx, q.DB, live); err != nil {
		return g, err
	}
	positions, err := q.Positions.Positions(ctx, q.DB, live)
	for _, p := range positions {
		g.Read = append(g.Read, job.PartitionRange{Partition: p.Partition, Range: job.Range{From: p.CoversFrom, To: p.Next}})
	}
	return g, err
}

// Lacks reports whether live has read records that a version has not, whether they have expired or not.
func (q Survey) Lacks(ctx context.Context, live *job.Ref, ref job.Ref) (bool, error) {
	if live == nil || *live == ref {
		return false, nil
	}
	positions, err := q.Positions.Positions(ctx, q.DB, ref)
	if err != nil {
		return false, err
	}
	h := histories{begins: covered(positions)}
	if h.covered, err = q.liveCovers(ctx, *live, h.begins); err != nil {
		return false, err
	}
	h.gaps, err = q.AcceptedGaps(ctx, *live, ref)
	return len(h.losses(nil)) > 0, err
}
