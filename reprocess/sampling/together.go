package sampling

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kappactl/kappactl/internal/gather"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/readiness"
)

// together combines the queries and writes of samplers, when their versions only follow their topics: those that take
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

// ends holds the brokers' answer for some topics.
type ends struct {
	facts []job.PartitionFacts
	err   error
}

const (
	// beats is how many of the moments in which questions are gathered fit into a tick.
	beats = 20
	// togetherWithin is how long statements for many versions may take.
	togetherWithin = 10 * time.Second
	// keepEvery is after how many ticks samples that did not change are noted as taken again; readiness.StaleAfter is
	// longer.
	keepEvery = 2
)

func newTogether(c *Samplers) *together {
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
func (c *Samplers) askPositions(ctx context.Context, of []positionsAsk) ([]*job.Positions, error) {
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
func (c *Samplers) askPaces(ctx context.Context, of []job.Ref) ([][]ledger.Pace, error) {
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

// askEnds asks the brokers once for the topics of all. Where something is missing in the answer, the topics of a
// version are asked for by themselves: what is wrong with a topic concerns only those who read it.
func (c *Samplers) askEnds(ctx context.Context, of [][]string) ([]ends, error) {
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
func (c *Samplers) offsets(ctx context.Context, topics []string) ([]job.PartitionFacts, error) {
	limited, cancel := context.WithTimeout(ctx, c.config.AskTimeout)
	defer cancel()
	return c.Brokers.Offsets(limited, topics)
}
