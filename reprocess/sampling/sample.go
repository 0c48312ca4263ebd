package sampling

import (
	"context"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/readiness"
)

// Sample is one sample of a version.
type Sample struct {
	Positions []job.Position
	Facts     []job.PartitionFacts // nil when the brokers did not answer
	Verdict   readiness.Judgement
	Fault     job.Fault // the first fault of a partition
	At        job.Partition
}

// Sample reads how far a version is, positions first and the ends after, judges it and writes both down.
func (w *Sampler) Sample(ctx context.Context, st *ledger.State) (Sample, error) {
	var out Sample
	var err error
	if out.Positions, err = w.positions(ctx, st.Ref()); err != nil {
		return out, err
	}
	live, liveDead, err := w.livePositions(ctx, st)
	if err != nil {
		return out, err
	}
	queued, err := w.queued(ctx, st)
	if err != nil {
		return out, err
	}
	if err := w.seed(ctx, st); err != nil {
		return out, err
	}
	facts, why := w.ask(ctx, st)
	if ctx.Err() != nil {
		return out, ctx.Err()
	}
	out.Facts = facts
	rows := make([]readiness.Observation, 0, len(out.Positions))
	judged := make([]readiness.Judgement, 0, len(out.Positions))
	now := w.c.Now()
	for _, p := range out.Positions {
		s := readiness.Compose(st.Phase, st.PausedAt != nil, p, facts, why)
		s.Queued, s.Live = queued, live[p.Partition]
		t := w.track(p.Partition)
		if s.Unknown.IsZero() {
			t.Observe(now, &s)
		}
		j := readiness.Judge(s, st.Spec.Ready)
		if s.Fault.Kind != job.FaultNone && !ledger.Candidate(st.Phase) {
			j.Reason = j.Reason.Next(ledger.WayOut(st.Ref(), s.Partition, s.Fault))
		}
		judged = append(judged, j)
		rows = append(rows, t.Observation(s, p.RecordTime, j))
		if out.Fault.Kind == job.FaultNone && s.Fault.Kind != job.FaultNone {
			out.Fault, out.At = s.Fault, s.Partition
		}
	}
	paces, err := w.paces(ctx, st.Ref())
	if err != nil {
		return out, err
	}
	out.Verdict = w.WithTrouble(st, w.overall(st, now, judged, out.Positions, liveDead), paces)
	return out, w.record(ctx, st, out, rows, paces)
}

// record writes a sample down.
func (w *Sampler) record(ctx context.Context, st *ledger.State, of Sample, rows []readiness.Observation,
	paces []ledger.Pace,
) error {
	if err := w.age(ctx, st, rows); err != nil {
		return err
	}
	if err := w.warn(ctx, st, rows, paces); err != nil {
		return err
	}
	// The verdict goes first: the samples tell how young it is, so it must never be older than they are.
	down := of.Fault.Kind != job.FaultNone && !ledger.Candidate(st.Phase)
	if err := w.Note(ctx, st, of.Verdict, down); err != nil {
		return err
	}
	if err := w.write(ctx, st, rows); err != nil {
		return err
	}
	return w.keepLag(ctx, st, rows)
}

// livePositions are those a candidate is compared with; none when live is down, for then it is no measure.
func (w *Sampler) livePositions(ctx context.Context, st *ledger.State) (map[job.Partition]*int64, *readiness.Counts,
	error,
) {
	live := st.LiveRef()
	if live == nil || st.IsLive() {
		return nil, nil, nil
	}
	positions, err := w.positions(ctx, *live)
	if err != nil {
		return nil, nil, err
	}
	dead := &readiness.Counts{}
	out := make(map[job.Partition]*int64, len(positions))
	for _, p := range positions {
		if p.Fault.Kind == job.FaultNone {
			out[p.Partition] = &p.Next
		}
		dead.Add(p)
	}
	return out, dead, nil
}

// queued is why a replay has not begun: earlier ones use up the server's budget; zero when it may begin.
func (w *Sampler) queued(ctx context.Context, st *ledger.State) (reason.Reason, error) {
	if st.Phase != job.Replaying {
		return reason.Reason{}, nil
	}
	work, err := w.c.Engines.Of(&st.Spec)
	if err != nil {
		return reason.Reason{}, err
	}
	n, err := work.Before(ctx, w.c.Pool, st.Ref())
	limit := w.c.config.Replays
	if err != nil || n < limit {
		return reason.Reason{}, err
	}
	return reason.Queued(limit, n-limit), nil
}

// seed takes over what an earlier controller saw, once.
func (w *Sampler) seed(ctx context.Context, st *ledger.State) error {
	if w.seeded {
		return nil
	}
	seeds, err := ledger.ReadSeeds(ctx, w.c.Pool, st)
	if err != nil {
		return err
	}
	for _, r := range seeds {
		id, err := job.ParseTopicID(r.TopicID)
		if err != nil {
			return err
		}
		if r.Position == nil || r.EndOffset == nil {
			continue
		}
		var lag time.Duration
		if r.LagSeconds != nil {
			lag = time.Duration(*r.LagSeconds * float64(time.Second))
		}
		at := w.c.Now().Add(-time.Duration(r.Age * float64(time.Second)))
		w.track(job.Partition{Topic: r.Topic, TopicID: id, ID: r.Partition}).Seed(at, *r.Position, *r.EndOffset, lag)
	}
	w.seeded = true
	if st.Verdict == job.Ready && len(seeds) > 0 && freshSeeds(seeds) {
		w.good = w.c.Now().Add(-st.Spec.Ready.StableFor) // it was stable, and no sample has contradicted that
	}
	return nil
}

func freshSeeds(seeds []ledger.SeedRow) bool {
	for _, r := range seeds {
		if r.Age > readiness.StaleAfter.Seconds() {
			return false
		}
	}
	return true
}

func (w *Sampler) track(p job.Partition) *readiness.Track {
	t, ok := w.tracks[p]
	if !ok {
		t = &readiness.Track{}
		w.tracks[p] = t
	}
	return t
}

// overall judges the version and keeps since when it is within its limits.
func (w *Sampler) overall(
	st *ledger.State, now time.Time, judged []readiness.Judgement, positions []job.Position, live *readiness.Counts,
) readiness.Judgement {
	ok := len(judged) > 0
	for _, j := range judged {
		ok = ok && readiness.Within(j.Verdict)
	}
	switch {
	case !ok:
		w.good = time.Time{}
	case w.good.IsZero():
		w.good = now
	}
	v := readiness.Version{
		Phase: st.Phase, StableFor: st.Spec.Ready.StableFor,
		Unhealthy: w.tooManyDead(st, now, positions, live),
	}
	if ok {
		v.WithinFor = now.Sub(w.good)
	}
	return readiness.Overall(judged, v)
}

// tooManyDead is why a version with too many dead letters is unhealthy: a candidate by all of them and beside live,
// another by those of the last minutes.
func (w *Sampler) tooManyDead(st *ledger.State, now time.Time, positions []job.Position,
	live *readiness.Counts,
) reason.Reason {
	n := readiness.Counts{At: now}
	for _, p := range positions {
		n.Add(p)
	}
	w.dead.Observe(n)
	if !ledger.Candidate(st.Phase) {
		n, live = w.dead.Recent(), nil
	}
	return readiness.TooManyDeadLetters(st.Ref(), st.Spec.Source.OnError.Max, n, live, ledger.Candidate(st.Phase) &&
		st.Phase.Consumes())
}

// Follow gives partitions that appeared since a place to start from, their first offset.
func (w *Sampler) Follow(ctx context.Context, st *ledger.State, s Sample) (int, error) {
	fresh := readiness.Appeared(s.Positions, s.Facts)
	if len(fresh) == 0 {
		return 0, nil
	}
	work, err := w.c.Engines.Of(&st.Spec)
	if err != nil {
		return 0, err
	}
	err = w.c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := ledger.Fence(ctx, tx, st); err != nil {
			return err
		}
		if st.Phase == job.Replaying {
			if err := work.Extend(ctx, tx, st.Ref(), fresh); err != nil {
				return err
			}
		} else {
			for _, f := range fresh {
				if err := w.c.Speed.Follow(ctx, tx, st.Ref(), f); err != nil {
					return err
				}
			}
		}
		return ledger.AddEvent(ctx, tx, st.Entry(ledger.EventPartition, reason.PartitionsAdded(len(fresh))))
	})
	w.ForgetKeys()
	return len(fresh), err
}
