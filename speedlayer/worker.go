package speedlayer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/kappactl/kappactl/internal/archive"
	"github.com/kappactl/kappactl/internal/faultpoint"
	"github.com/kappactl/kappactl/internal/format"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/kafka"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/query"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/internal/retry"
	"github.com/kappactl/kappactl/internal/typed"
)

// replay is the work of one run on the segments of a target.
type replay struct {
	*run
	target   target
	leases   *segmentLeases
	throttle *bucket
	pace     *pacer
	unread   atomic.Int64 // when segments were left to other agents, as Unix nanoseconds; 0: they are not
	asked    time.Time    // when the brokers were last asked whether a topic is there again; owned by renew
}

// worker reads one segment after the other. Its run goroutine owns all of it.
type worker struct {
	*replay
	client  *kgo.Client
	fetcher *archive.Reader
	typed   *typed.Reader
	session *query.Session
	decoder *format.Decoder
	finder  *finder
	reached atomic.Int64 // about how far the segment in hand is read
}

// replay reads segments until the version is no longer replaying.
func (r *run) replay(ctx context.Context) error {
	if err := r.compile(ctx); err != nil {
		return err
	}
	p := r.newReplay(ctx, target{ref: r.ref})
	defer p.pace.forget(ctx)
	return r.during(ctx, replaying, r.look(), p.renew, p.readAll)
}

// readAll runs the workers of this agent.
func (p *replay) readAll(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for range p.count() {
		g.Go(func() error { return unlessDone(ctx, p.work(ctx)) })
	}
	return g.Wait()
}

func (r *run) newReplay(ctx context.Context, t target) *replay {
	p := &replay{
		run: r, target: t, leases: newSegmentLeases(r, t), throttle: &bucket{now: r.Now}, pace: &pacer{run: r, target: t},
	}
	if err := p.share(ctx); err != nil {
		p.throttle.set(float64(p.spec.Replay.MaxRate)) // the renewal tries again
	}
	return p
}

// count is the number of workers that this agent starts; replay.workers bounds those of all agents when they claim.
func (p *replay) count() int {
	if n := p.spec.Replay.Workers; n > 0 {
		return min(n, p.config.Workers)
	}
	return p.config.Workers
}

// renew prolongs the leases, sets this agent's share of the rate, notes what slows it down and opens what may be read
// again.
func (p *replay) renew(ctx context.Context) error {
	if err := p.reopen(ctx); err != nil {
		p.quiet.warn("segments of topics that were away stay closed", err)
	}
	if err := p.share(ctx); err != nil {
		return err
	}
	if err := p.pace.note(ctx, p.count()); err != nil {
		return err
	}
	return errors.Join(p.leases.renew(ctx), p.leases.note(ctx))
}

// share sets this agent's part of replay.max_rate: it is divided by the agents that read segments of the version,
// whatever they have to do else, so that all of it is used and no more.
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
	w.started()
	for failures := 0; ; {
		found, err := w.one(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			failures++
			w.quiet.warn("a segment could not be replayed and is tried again", err)
			w.failed(ctx, landings, reason.SegmentFails, err)
			err = retry.Sleep(ctx, retry.Backoff(failures, 100*time.Millisecond, 10*time.Second))
		case !found:
			failures = 0
			err = retry.Sleep(ctx, w.tick())
		default:
			failures = 0
			w.troubles.works(landings)
		}
		if err != nil {
			return nil // ctx is done
		}
	}
}

func (w *worker) open(ctx context.Context) (err error) {
	if w.client, err = kafka.NewClient(w.Kafka, kgo.WithHooks(throttled{
		metrics: w.Metrics,
		run:     &w.pace.told,
	})); err != nil {
		return err
	}
	fetches := w.replayFetches()
	fetches.Cluster = w.cluster
	w.fetcher = w.reader(kafka.NewFetcher(w.client, fetches), w.replayPolicy())
	if w.decoder, err = format.New(w.spec.Source, w.compiled.Fields); err != nil {
		return err
	}
	if err := w.openTyped(); err != nil {
		return err
	}
	if w.session, err = query.Open(ctx, w.Engine.session()); err != nil {
		return err
	}
	w.finder, err = newFinder(w.run, w.session, w.decoder)
	return err
}

func (w *worker) close() {
	w.finder.close()
	if w.session != nil {
		if err := w.session.Close(); err != nil {
			w.quiet.warn("a query session does not close", err)
		}
	}
	if w.decoder != nil {
		w.decoder.Close()
	}
	if w.typed != nil {
		w.typed.Rest()
	}
	if w.client != nil {
		w.fetcher.Close()
		w.client.Close()
	}
}

// one claims a segment and replays it. found is true when there was one to claim.
func (w *worker) one(ctx context.Context) (found bool, err error) {
	if err := acquire(ctx, w.workers); err != nil {
		return false, err
	}
	defer func() { <-w.workers }()
	if !w.mayRead(ctx) {
		return false, nil
	}
	g, err := w.claim(ctx)
	if err != nil || g == nil {
		return false, err
	}
	w.hit(faultpoint.SegmentClaimed)
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w.reached.Store(0)
	w.leases.add(g.ID, g.Claim, &w.reached, func() { cancel(errFenced) })
	defer w.leases.drop(g.ID)
	if g.Attempts >= mostAttempts {
		return true, w.fail(ctx, *g, abandoned(*g))
	}
	w.fetcher.Prefer(w.replayPolicy())
	defer w.fetcher.Rest()
	defer w.typed.Rest()
	err = w.attempt(within, *g, nil)
	if ofData(err) || costly(err) && g.length() < splittable {
		err = w.sift(within, *g, err)
	}
	if err != nil && errors.Is(context.Cause(within), errFenced) { // a renewal may take one that has just landed for lost
		err = errFenced
	}
	return true, w.settle(ctx, *g, err)
}

// survived takes back the attempt of a segment that was lost by its lease, not by the end of its agent.
func (w *worker) survived(ctx context.Context, g segment) error {
	end, cancel := w.finishing(ctx)
	defer cancel()
	if _, err := w.Pool.Exec(end, w.target.sql(sqlSegmentSurvived), pgx.NamedArgs{"id": g.ID}); err != nil {
		return fmt.Errorf("note that segment %d was lost: %w", g.ID, err)
	}
	return nil
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
		return w.survived(ctx, g)
	case errors.As(err, &halt):
		return w.fail(ctx, g, halt.fault)
	case (errors.As(err, &resource) || pg.TimedOut(err)) && ctx.Err() == nil && g.length() >= splittable: // half of it may pass
		return w.halve(ctx, g, err)
	}
	end, cancel := w.finishing(ctx)
	defer cancel()
	return errors.Join(err, w.release(end, g, !costly(err)))
}

// abandoned is the fault of a segment that was begun too often.
func abandoned(g segment) job.Fault {
	return queryFault(g.partition, g.span(),
		fmt.Errorf("%d times a worker began segment %d and did not come to its end: its agent ended, "+
			"or a record needs more than agent.memory", g.Attempts, g.ID))
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
	err := w.query(ctx, w.session, w.land, in, l.write)
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
