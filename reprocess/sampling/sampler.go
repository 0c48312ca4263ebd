// Package sampling reads how far a version is, judges it and writes both down: once a tick for each version, and in one
// statement for all versions of an agent that only follow their topics.
package sampling

import (
	"context"
	"log/slog"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/engine"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/plan"
	"github.com/kappactl/kappactl/reprocess/readiness"
)

// Speed reads and writes versions' positions; implemented by speedlayer.Store.
type Speed interface {
	plan.Positions

	// PositionsOf compares the positions of versions with those that are known and lists them where they differ.
	PositionsOf(ctx context.Context, db pg.DB, known map[job.Ref]job.Positions) (map[job.Ref]job.Positions, error)
	// Follow gives a partition that appeared later a position at From (live phases, no segments).
	Follow(ctx context.Context, tx *pg.Tx, ref job.Ref, f job.Frozen) error
}

// Deps are what samplers work with.
type Deps struct {
	Pool    *pg.Pool
	Brokers plan.Brokers
	History plan.Histories // nil: jobs read the brokers alone
	Speed   Speed
	Engines engine.Set
	Log     *slog.Logger
	Now     func() time.Time
}

// Config bounds samplers.
type Config struct {
	Tick       time.Duration // between two samples
	AskTimeout time.Duration // for one question to the brokers
	Replays    int           // versions that replay at once, over all agents
	Patience   time.Duration // how long work on a candidate may fail before the version is unhealthy
}

// Samplers are those of one agent. They are safe for concurrent use.
type Samplers struct {
	Deps
	config   Config
	together *together
}

// New returns the samplers of an agent.
func New(d Deps, c Config) *Samplers {
	out := &Samplers{Deps: d, config: c}
	out.together = newTogether(out)
	return out
}

func (c *Samplers) log(st *ledger.State) *slog.Logger {
	return c.Log.With("job", st.Job, "version", job.Number(st.Number).String(), "deployment", st.ID)
}

// Sampler samples the version of one deployment. Its owner is one goroutine.
type Sampler struct {
	c         *Samplers
	id, claim int64

	// Together reports that the version only follows its topics: it is asked and written together with others.
	Together  bool
	Failing   readiness.Failing // of the steps of the version
	Unindexed reason.Reason     // why some of its indexes were not made
	// Unreadable is why readers of the live version get an error from its view.
	Unreadable reason.Reason

	tracks     map[job.Partition]*readiness.Track
	seeded     bool
	good       time.Time // since when every partition is within its limits; zero when one is not
	dead       readiness.DeadLetters
	lag        lagSeries
	ages       readiness.Ages // of what is unread, as asked at aged
	aged       time.Time
	alarm      alarm
	moved      []reason.Reason // warnings of keys in several partitions, once movedKnown
	movedKnown bool

	// What is known of the version, so that only what changed is read and written.
	known   *ledger.State
	places  map[job.Ref]job.Positions
	noted   noted
	written map[job.Partition]readiness.Observation
	kept    time.Time // when the samples were written or noted as still true
}

// Of returns the sampler of a deployment under a claim.
func (c *Samplers) Of(deployment, claim int64) *Sampler {
	return &Sampler{
		c: c, id: deployment, claim: claim, tracks: map[job.Partition]*readiness.Track{}, places: map[job.Ref]job.Positions{},
	}
}

// WithTrouble is the verdict j, unless a step that fails here or work that fails on an agent is why the version does
// not go on.
func (w *Sampler) WithTrouble(st *ledger.State, j readiness.Judgement, paces []ledger.Pace) readiness.Judgement {
	elsewhere := w.Unreadable
	for _, p := range paces {
		if !p.Trouble.IsZero() {
			elsewhere = p.Trouble
		}
	}
	return w.Failing.Judge(w.c.Now(), j, elsewhere, ledger.Candidate(st.Phase), w.c.config.Patience)
}
