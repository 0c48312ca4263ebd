package speedlayer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/kappactl/kappactl/internal/faultpoint"
	"github.com/kappactl/kappactl/internal/format"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/query"
)

// replay is the replaying mode of one run.
type replay struct {
	*run
	leases   *segmentLeases
	throttle *bucket
	pace     *pacer
}

// worker reads one segment after the other. Its run goroutine owns all of it.
type worker struct {
	*replay
	client  *kgo.Client
	fetcher *kafka.Fetcher
	session *query.Session
	decoder *format.Decoder
}

// replay reads segments until the version is no longer replaying.
func (r *run) replay(ctx context.Context) error {
	p := &replay{run: r, leases: newSegmentLeases(r), throttle: &bucket{now: r.Now}, pace: &pacer{run: r}}
	if err := p.share(ctx); err != nil {
		p.throttle.set(float64(p.spec.Replay.MaxRate)) // the renewal tries again
	}
	defer p.pace.forget(ctx)
	return r.during(ctx, replaying, r.look(), p.renew, func(ctx context.Context) error {
		g, ctx := errgroup.WithContext(ctx)
		for range p.count() {
			g.Go(func() error { return unlessDone(ctx, p.work(ctx)) })
		}
		return g.Wait()
	})
}

// count is the number of workers that this agent starts; replay.workers bounds those of all agents when they claim.
func (p *replay) count() int {
	if n := p.spec.Replay.Workers; n > 0 {
		return min(n, p.config.Workers)
	}
	return p.config.Workers
}

// renew prolongs the leases, sets this agent's share of the rate and notes what slows it down.
func (p *replay) renew(ctx context.Context) error {
	if err := p.share(ctx); err != nil {
		return err
	}
	if err := p.pace.note(ctx, p.count()); err != nil {
		return err
	}
	return p.leases.renew(ctx)
}

// share sets this agent's part of replay.max_rate: it is divided by the agents that read segments of the version, whatever they have
// to do else, so that all of it is used and no more.
func (p *replay) share(ctx context.Context) error {
	if p.spec.Replay.MaxRate <= 0 {
		return nil
	}
	n, err := p.pace.readers(ctx)
	if err == nil {
		p.throttle.set(float64(p.spec.Replay.MaxRate) / float64(n))
	}
	return err
}

func (p *replay) work(ctx context.Context) error {
	w := &worker{replay: p}
	defer w.close()
	if err := w.open(ctx); err != nil {
		return fmt.Errorf("start a replay worker of %s: %w", p.ref, err)
	}
	for failed := 0; ; {
		found, err := w.one(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			failed++
			w.quiet.warn("a segment could not be replayed and is tried again", err)
			err = wait(ctx, backoff(failed, 100*time.Millisecond, 10*time.Second))
		case !found:
			failed = 0
			err = wait(ctx, w.tick())
		default:
			failed = 0
		}
		if err != nil {
			return nil // ctx is done
		}
	}
}

func (w *worker) open(ctx context.Context) (err error) {
	if w.client, err = kafka.NewClient(w.Kafka, kgo.WithHooks(throttled{metrics: w.Metrics, run: &w.pace.told})); err != nil {
		return err
	}
	w.fetcher = kafka.NewFetcher(w.client, w.replayFetches())
	if w.decoder, err = format.New(w.spec.Source, w.compiled.FieldsFor(w.lanes)); err != nil {
		return err
	}
	w.session, err = query.Open(ctx, w.Engine.session())
	return err
}

func (w *worker) close() {
	if w.session != nil {
		if err := w.session.Close(); err != nil {
			w.quiet.warn("a query session does not close", err)
		}
	}
	if w.decoder != nil {
		w.decoder.Close()
	}
	if w.client != nil {
		w.fetcher.Close()
		w.client.Close()
	}
}

// one claims a segment and replays it. found says that there was one to claim.
func (w *worker) one(ctx context.Context) (found bool, err error) {
	if err := acquire(ctx, w.workers); err != nil {
		return false, err
	}
	defer func() { <-w.workers }()
	g, err := w.claim(ctx)
	if err != nil || g == nil {
		return false, err
	}
	w.hit(faultpoint.SegmentClaimed)
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w.leases.add(g.ID, g.Claim, func() { cancel(errFenced) })
	defer w.leases.drop(g.ID)
	err = w.attempt(within, *g, nil)
	var data *dataError
	if errors.As(err, &data) {
		err = w.sift(within, *g, data)
	}
	if err != nil && errors.Is(context.Cause(within), errFenced) { // a renewal may take one that has just landed for lost
		err = errFenced
	}
	return true, w.settle(ctx, *g, err)
}

// settle decides what becomes of a segment whose attempt ended with err.
func (w *worker) settle(ctx context.Context, g segment, err error) error {
	var halt *stopped
	var resource *query.ResourceError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errFenced):
		w.Metrics.LeaseLosses.Add(1)
		w.log.Warn("a segment was taken over by another worker", "segment", g.ID)
		return nil
	case errors.As(err, &halt):
		return w.fail(ctx, g, halt.fault)
	case (errors.As(err, &resource) || pg.TimedOut(err)) && ctx.Err() == nil && g.length() >= splittable: // half of it may pass
		return w.halve(ctx, g, err)
	}
	end, cancel := w.finishing(ctx)
	defer cancel()
	return errors.Join(err, pg.Release(end, w.Pool, leasedSegment, w.Agent, "r.id = @id AND r.claim = @claim", g.args()))
}

// halve gives back a segment that was too much at once, because of err, as two.
func (w *worker) halve(ctx context.Context, g segment, err error) error {
	if failed := w.split(ctx, g, g.middle()); failed != nil {
		return errors.Join(err, failed)
	}
	return fmt.Errorf("%w; now it is two segments, cut at offset %d", err, g.middle())
}

// attempt replays the segment: one statement, one transaction. What skip names is a dead letter unseen.
func (w *worker) attempt(ctx context.Context, g segment, skip map[int64]format.Reject) error {
	s := &stream{worker: w, segment: g, skip: skip}
	s.open(ctx)
	defer s.close()
	in := &feed{schema: w.decoder.Schema(), pull: s.pull}
	defer in.Release()
	l := &landing{worker: w, ctx: ctx, segment: g, stream: s, writing: stopwatch{now: w.Now}, opened: w.Now()}
	err := w.session.Run(ctx, w.land, in, l.write)
	if err == nil {
		err = in.drain()
	}
	if err != nil {
		return classify(l.abort(err))
	}
	l.queried = w.Now().Sub(l.opened)
	return classify(l.finish(ctx, &s.tally))
}

// classify marks the errors that the data raises: in the engine, or in the database as it takes the rows.
func classify(err error) error {
	var exec *query.ExecError
	var known *dataError
	if err == nil || errors.As(err, &known) {
		return err
	}
	if errors.As(err, &exec) {
		if strings.Contains(exec.Error(), longKeyGuard) {
			return &dataError{&keyTooLong{}}
		}
		return &dataError{err}
	}
	if code := pg.Code(err); len(code) == 5 {
		switch code[:2] {
		case "22", "23", "54":
			return &dataError{err}
		}
	}
	return err
}

// queryFault is the fault of a record, or of a whole range, that the query cannot take.
func queryFault(p job.Partition, r job.Range, err error) job.Fault {
	where := fmt.Sprintf("%s %s", p, r)
	if r.Len() == 1 {
		where = offsetName(p, r.From)
	}
	return job.Fault{Kind: job.FaultQuery, From: r.From, To: r.To, Detail: printable(where + ": " + err.Error())}
}
