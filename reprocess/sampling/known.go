package sampling

import (
	"context"
	"slices"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/readiness"
)

// Load reads the state: of a steady version together with others, and what did not change is not read again.
func (w *Sampler) Load(ctx context.Context) (*ledger.State, error) {
	if !w.Together || w.known == nil {
		st, err := ledger.LoadState(ctx, w.c.Pool, w.id, w.claim)
		if w.known = st; err == nil {
			w.noted = notedIn(st)
		}
		return st, err
	}
	fresh, err := w.c.together.states.Put(ctx, ledger.Known{ID: w.id, Claim: w.claim, Digest: w.known.Digest})
	if err != nil {
		return nil, err
	}
	if fresh.Err != nil {
		return nil, fresh.Err
	}
	if fresh.State != nil {
		w.known = fresh.State
	}
	st := *w.known
	st.Now, w.noted = fresh.Now, notedIn(&st)
	return &st, nil
}

// positions are those of a version.
func (w *Sampler) positions(ctx context.Context, ref job.Ref) ([]job.Position, error) {
	if !w.Together {
		delete(w.places, ref)
		return w.c.Speed.Positions(ctx, w.c.Pool, ref)
	}
	changed, err := w.c.together.positions.Put(ctx, positionsAsk{ref, w.places[ref]})
	if err != nil {
		return nil, err
	}
	if changed != nil {
		w.places[ref] = *changed
	}
	return slices.Clone(w.places[ref].All), nil
}

// paces are what slows a version down, or keeps it from going on.
func (w *Sampler) paces(ctx context.Context, ref job.Ref) ([]ledger.Pace, error) {
	if w.Together {
		return w.c.together.paces.Put(ctx, ref)
	}
	found, err := ledger.ReadPaces(ctx, w.c.Pool, []job.Ref{ref}, readiness.StaleAfter)
	return found[ref], err
}

// ask returns the offsets of the brokers, and why they are missing when the brokers do not answer for all topics.
func (w *Sampler) ask(ctx context.Context, st *ledger.State) (facts []job.PartitionFacts, why reason.Reason) {
	var err error
	if w.Together {
		var e ends
		if e, err = w.c.together.ends.Put(ctx, st.Spec.Source.Topics); err == nil {
			facts, err = e.facts, e.err
		}
	} else {
		facts, err = w.c.offsets(ctx, st.Spec.Source.Topics)
	}
	if err != nil {
		return facts, reason.BrokersSilent(err)
	}
	return facts, reason.Reason{}
}

// Note writes the verdict when it is not the one that is noted.
func (w *Sampler) Note(ctx context.Context, st *ledger.State, j readiness.Judgement, stale bool) error {
	if w.noted.verdict.Verdict == j.Verdict && w.noted.stale == stale && w.noted.verdict.Reason.Equal(j.Reason) {
		w.noted.verdict = j // compares faster next time than what the database gave
		return nil
	}
	err := ledger.SetVerdict(ctx, w.c.Pool, st, j, stale)
	if err == nil {
		w.noted.verdict, w.noted.stale = j, stale
	}
	return err
}

// noteWarnings writes the warnings when they are not those that are noted.
func (w *Sampler) noteWarnings(ctx context.Context, st *ledger.State, warnings []reason.Reason) error {
	if slices.EqualFunc(w.noted.warnings, warnings, reason.Reason.Equal) {
		w.noted.warnings = warnings
		return nil
	}
	err := ledger.SetWarnings(ctx, w.c.Pool, st, warnings)
	if err == nil {
		w.noted.warnings = warnings
	}
	return err
}

// noted holds a version's values in the database besides its samples, as read or written last.
type noted struct {
	verdict  readiness.Judgement
	stale    bool
	warnings []reason.Reason
}

func notedIn(st *ledger.State) noted {
	return noted{
		verdict: readiness.Judgement{Verdict: st.Verdict, Reason: st.Reason}, stale: st.StaleSince != nil,
		warnings: st.Warnings,
	}
}

// write stores the samples. Those of a steady version are written when they changed, and otherwise it is noted now and
// then that they are still true.
func (w *Sampler) write(ctx context.Context, st *ledger.State, rows []readiness.Observation) error {
	now := w.c.Now()
	if !w.Together {
		w.wrote(rows, now)
		return ledger.WriteObservations(ctx, w.c.Pool, ledger.Samples{State: st, Rows: rows})
	}
	var changed []readiness.Observation
	for _, r := range rows {
		if last, known := w.written[r.Key]; !known || !last.Same(r) {
			changed = append(changed, r)
		}
	}
	var err error
	switch {
	case len(changed) < len(rows) && now.Sub(w.kept) >= keepEvery*w.c.config.Tick*9/10:
		var n int
		if n, err = w.c.together.kept.Put(ctx, st); err == nil {
			w.kept = now
		}
		if n < len(rows) { // somebody has deleted some, or is about to write them
			changed = rows
		}
	case len(changed) == 0:
		return nil
	}
	if err == nil && len(changed) > 0 {
		_, err = w.c.together.samples.Put(ctx, ledger.Samples{State: st, Rows: changed})
	}
	if err != nil {
		w.written = nil // what is stored is not known
		return err
	}
	w.wrote(changed, w.kept)
	return nil
}

// wrote remembers what is stored.
func (w *Sampler) wrote(rows []readiness.Observation, kept time.Time) {
	if w.written == nil {
		w.written = make(map[job.Partition]readiness.Observation, len(rows))
	}
	for _, r := range rows {
		w.written[r.Key] = r
	}
	w.kept = kept
}

// point stores a point of the deployment's lag.
func (w *Sampler) point(ctx context.Context, p ledger.NewLagPoint) error {
	if !w.Together {
		return ledger.AddLagPoints(ctx, w.c.Pool, []ledger.NewLagPoint{p})
	}
	_, err := w.c.together.lag.Put(ctx, p)
	return err
}
