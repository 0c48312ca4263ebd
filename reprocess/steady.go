package reprocess

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kappactl/kappactl/internal/gather"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/readiness"
)

// together is what the watches of a Controller ask and write together, when their versions only follow their topics: those that take
// their samples at the same beat need one statement of each kind, however many they are.
type together struct {
	states    *gather.Gather[ledger.Known, ledger.Fresh]
	positions *gather.Gather[positionsAsk, *job.Positions]
	paces     *gather.Gather[job.Ref, []ledger.Pace]
	ends      *gather.Gather[[]string, ends]
	samples   *gather.Gather[ledger.Samples, struct{}]
	kept      *gather.Gather[*ledger.State, int]
	lag       *gather.Gather[ledger.NewLagPoint, struct{}]
}

// positionsAsk asks whether the positions of a version are still those that are known.
type positionsAsk struct {
	ref   job.Ref
	known job.Positions
}

// ends is what the brokers say of some topics.
type ends struct {
	facts []job.PartitionFacts
	err   error
}

const (
	// beats is how many of the moments in which questions are gathered fit into a tick.
	beats = 20
	// togetherWithin is how long statements for many versions may take.
	togetherWithin = 10 * time.Second
	// keepEvery is after how many ticks samples that did not change are noted as taken again; readiness.StaleAfter is longer.
	keepEvery = 2
)

func newTogether(c *Controller) *together {
	moment := c.config.Tick / beats
	return &together{
		states: gather.New(moment, togetherWithin, func(ctx context.Context, of []ledger.Known) ([]ledger.Fresh, error) {
			return ledger.LoadStates(ctx, c.Pool, of)
		}),
		positions: gather.New(moment, togetherWithin, c.askPositions),
		paces:     gather.New(moment, togetherWithin, c.askPaces),
		ends:      gather.New(moment, 2*c.config.AskTimeout, c.askEnds),
		samples: gather.New(moment, togetherWithin, func(ctx context.Context, of []ledger.Samples) ([]struct{}, error) {
			return make([]struct{}, len(of)), ledger.WriteObservations(ctx, c.Pool, of...)
		}),
		kept: gather.New(moment, togetherWithin, func(ctx context.Context, of []*ledger.State) ([]int, error) {
			return ledger.KeepObservations(ctx, c.Pool, of)
		}),
		lag: gather.New(moment, togetherWithin, func(ctx context.Context, of []ledger.NewLagPoint) ([]struct{}, error) {
			return make([]struct{}, len(of)), ledger.AddLagPoints(ctx, c.Pool, of)
		}),
	}
}

// askPositions answers nil where the positions are those that are known.
func (c *Controller) askPositions(ctx context.Context, of []positionsAsk) ([]*job.Positions, error) {
	known := make(map[job.Ref]job.Positions, len(of))
	for _, q := range of {
		if k, twice := known[q.ref]; twice && (!k.Known || k.Digest != q.known.Digest) {
			q.known = job.Positions{} // two who know different things are both told
		}
		known[q.ref] = q.known
	}
	changed, err := c.Speed.PositionsOf(ctx, c.Pool, known)
	if err != nil {
		return nil, err
	}
	out := make([]*job.Positions, len(of))
	for i, q := range of {
		if p, is := changed[q.ref]; is {
			out[i] = &p
		}
	}
	return out, nil
}

// askPaces answers with what slows versions down, or keeps them from going on.
func (c *Controller) askPaces(ctx context.Context, of []job.Ref) ([][]ledger.Pace, error) {
	found, err := ledger.ReadPaces(ctx, c.Pool, of, readiness.StaleAfter)
	if err != nil {
		return nil, err
	}
	out := make([][]ledger.Pace, len(of))
	for i, ref := range of {
		out[i] = found[ref]
	}
	return out, nil
}

// askEnds asks the brokers once for the topics of all. Where something is missing in the answer, the topics of a version are asked for by
// themselves: what is wrong with a topic concerns only those who read it.
func (c *Controller) askEnds(ctx context.Context, of [][]string) ([]ends, error) {
	names := slices.Concat(of...)
	slices.Sort(names)
	facts, err := c.offsets(ctx, slices.Compact(names))
	if len(of) == 1 {
		return []ends{{facts, err}}, nil
	}
	byTopic := map[string][]job.PartitionFacts{}
	for _, f := range facts {
		byTopic[f.Topic] = append(byTopic[f.Topic], f)
	}
	out := make([]ends, len(of))
	alone := map[string][]int{} // what is asked by itself, and for whom
	for i, topics := range of {
		whole := true
		for _, name := range topics {
			out[i].facts = append(out[i].facts, byTopic[name]...)
			whole = whole && len(byTopic[name]) > 0
		}
		if !whole {
			out[i].err = err
			key := strings.Join(topics, ",")
			alone[key] = append(alone[key], i)
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return out, nil // the brokers are silent
	}
	var group errgroup.Group
	group.SetLimit(asksAtOnce)
	for _, who := range alone {
		group.Go(func() error {
			var e ends
			e.facts, e.err = c.offsets(ctx, of[who[0]])
			for _, i := range who {
				out[i] = e
			}
			return nil
		})
	}
	return out, group.Wait()
}

// asksAtOnce is how many questions about single topics are asked of the brokers at once.
const asksAtOnce = 16

// offsets asks the brokers, for as long as one question may take.
func (c *Controller) offsets(ctx context.Context, topics []string) ([]job.PartitionFacts, error) {
	limited, cancel := context.WithTimeout(ctx, c.config.AskTimeout)
	defer cancel()
	return c.Brokers.Offsets(limited, topics)
}

// load reads the state: of a steady version together with others, and what did not change is not read again.
func (w *watch) load(ctx context.Context) (*ledger.State, error) {
	if !w.steady || w.known == nil {
		st, err := ledger.LoadState(ctx, w.c.Pool, w.id, w.claim)
		w.known = st
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
	st.Now = fresh.Now
	return &st, nil
}

// positions are those of a version.
func (w *watch) positions(ctx context.Context, ref job.Ref) ([]job.Position, error) {
	if !w.steady {
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
func (w *watch) paces(ctx context.Context, ref job.Ref) ([]ledger.Pace, error) {
	if w.steady {
		return w.c.together.paces.Put(ctx, ref)
	}
	found, err := ledger.ReadPaces(ctx, w.c.Pool, []job.Ref{ref}, readiness.StaleAfter)
	return found[ref], err
}

// ask returns the offsets of the brokers, and why they are missing when the brokers do not answer for all topics.
func (w *watch) ask(ctx context.Context, st *ledger.State) (facts []job.PartitionFacts, why reason.Reason) {
	var err error
	if w.steady {
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

// note writes the verdict when it is not the one that is noted.
func (w *watch) note(ctx context.Context, st *ledger.State, j readiness.Judgement, stale bool) error {
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
func (w *watch) noteWarnings(ctx context.Context, st *ledger.State, warnings []reason.Reason) error {
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

// noted is what the database has of a version beside its samples, as read or written last.
type noted struct {
	verdict  readiness.Judgement
	stale    bool
	warnings []reason.Reason
}

// write stores the samples. Those of a steady version are written when they changed, and otherwise it is noted now and then that they
// are still true.
func (w *watch) write(ctx context.Context, st *ledger.State, rows []readiness.Observation) error {
	now := w.c.Now()
	if !w.steady {
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
func (w *watch) wrote(rows []readiness.Observation, kept time.Time) {
	if w.written == nil {
		w.written = make(map[job.Partition]readiness.Observation, len(rows))
	}
	for _, r := range rows {
		w.written[r.Key] = r
	}
	w.kept = kept
}

// point stores a point of the deployment's lag.
func (w *watch) point(ctx context.Context, p ledger.NewLagPoint) error {
	if !w.steady {
		return ledger.AddLagPoints(ctx, w.c.Pool, []ledger.NewLagPoint{p})
	}
	_, err := w.c.together.lag.Put(ctx, p)
	return err
}
