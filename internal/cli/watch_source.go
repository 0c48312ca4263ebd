package cli

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/kappactl/kappactl/abtest"
	"github.com/kappactl/kappactl/batchlayer"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/tui"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/speedlayer"
)

// watchedEvents is how many events the page shows.
const watchedEvents = 500

// watchSource is where `watch` reads from and acts through: the same calls as those of the other commands.
type watchSource struct {
	app    *app
	client *client
}

var _ tui.Source = (*watchSource)(nil)

// Jobs is every job.
func (s *watchSource) Jobs(ctx context.Context) (tui.Overview, error) {
	jobs, err := s.client.store.Jobs(ctx)
	if err != nil {
		return tui.Overview{}, err
	}
	agents, err := s.client.agents(ctx)
	return tui.Overview{Jobs: jobs, Agents: agents}, err
}

// Job is one job with its newest deployment.
func (s *watchSource) Job(ctx context.Context, name job.Name) (tui.Detail, error) {
	status, err := s.client.store.Status(ctx, name)
	if err != nil {
		return tui.Detail{}, err
	}
	d := tui.Detail{Status: status}
	if d.Agents, err = s.client.agents(ctx); err != nil {
		return tui.Detail{}, err
	}
	if d.Deployment, err = s.client.store.Newest(ctx, name); err != nil {
		return tui.Detail{}, err
	}
	if d.Schedule, err = scheduleOf(ctx, s.client.pool, name); err != nil {
		return tui.Detail{}, err
	}
	if d.Layers, err = layersOf(ctx, s.client.pool, name); err != nil {
		return tui.Detail{}, err
	}
	if d.Archive, err = archivedOf(ctx, s.client.pool, name); err != nil {
		return tui.Detail{}, err
	}
	if d.Experiment, err = experimentFor(ctx, s.client.pool, name); err != nil {
		return tui.Detail{}, err
	}
	d.Facts, err = s.client.store.Facts(ctx, name)
	return d, err
}

// experimentFor is the newest experiment of a job, nil when it has had none.
func experimentFor(ctx context.Context, pool *pg.Pool, name job.Name) (*abtest.Course, error) {
	c, err := abtest.Store{}.Course(ctx, pool, name)
	var refusal *job.Refusal
	switch {
	case errors.As(err, &refusal):
		return nil, nil //nolint:nilnil // no experiment is not an error
	case err != nil:
		return nil, err
	}
	return &c, nil
}

// Events is the history of a job, newest first.
func (s *watchSource) Events(ctx context.Context, name job.Name) ([]tui.Event, error) {
	history, err := s.client.store.History(ctx, name, nil, watchedEvents)
	if err != nil {
		return nil, err
	}
	events := make([]tui.Event, 0, len(history))
	for _, e := range slices.Backward(history) {
		event := tui.Event{ID: e.ID, At: e.At, Kind: e.Kind, Message: e.Message, By: e.By}
		if e.Version != nil {
			event.Version = *e.Version
		}
		events = append(events, event)
	}
	return events, nil
}

// Resolve finds the version that a verb is about.
func (s *watchSource) Resolve(ctx context.Context, name job.Name, verb ledger.Verb) (job.Ref, error) {
	return s.client.store.Resolve(ctx, name, verb)
}

// Do runs the act as its command does.
func (s *watchSource) Do(ctx context.Context, a tui.Act) (ledger.Answer, error) {
	limit, err := time.ParseDuration(flipTimeout)
	if err != nil {
		return ledger.Answer{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
	defer cancel()
	if err := s.client.needAgent(ctx, 0); err != nil {
		return ledger.Answer{}, err
	}
	switch {
	case a.Verb == ledger.BatchRun:
		return s.run(ctx, a.Ref)
	case a.Verb.OfExperiment():
		answer, err := s.app.answered(ctx, s.client, ledger.Request{Job: a.Ref.Job, Verb: a.Verb, By: s.app.by()},
			"kappactl ab status "+string(a.Ref.Job))
		if err != nil {
			return ledger.Answer{}, err
		}
		return *answer, nil
	}
	asked := act{
		app: s.app, verb: a.Verb, target: target{Job: a.Ref.Job, Number: &a.Ref.Number},
		args: ledger.Args{Generation: a.Generation},
	}
	answer, err := asked.ask(ctx, s.client, a.Ref)
	if err != nil {
		return ledger.Answer{}, err
	}
	return *answer, nil
}

// run asks for a batch run and waits until it has begun.
func (s *watchSource) run(ctx context.Context, ref job.Ref) (ledger.Answer, error) {
	id, err := s.client.store.Ask(ctx, ledger.Request{
		Job: ref.Job, Number: ref.Number, Verb: ledger.BatchRun,
		By: s.app.by(),
	})
	if err != nil {
		return ledger.Answer{}, err
	}
	w := newPatience(s.app, s.client)
	for {
		answer, err := s.client.store.Answer(ctx, id)
		if err == nil && answer != nil {
			return *answer, nil
		}
		if err == nil {
			var g *batchlayer.Generation
			if g, err = batchlayer.Asked(ctx, s.client.pool, &speedlayer.Store{}, id); err == nil && g != nil {
				return ledger.Answer{Reason: begunAs(ref, *g), Next: "kappactl batch status " + string(ref.Job)}, nil
			}
		}
		if err := w.pause(ctx, answerEvery, err); err != nil {
			return ledger.Answer{}, err
		}
	}
}
