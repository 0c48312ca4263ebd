package reprocess

import (
	"context"
	"fmt"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
)

// Dead letters are judged from deadFrom records on, in live over the last deadWindow.
const (
	deadFrom   = 1000
	deadWindow = 10 * time.Minute
)

// sampled is what one sample of a version told.
type sampled struct {
	positions []job.Position
	facts     []job.PartitionFacts // nil when the brokers did not answer
	verdict   Judged
	fault     job.Fault // the first fault of a partition
	at        job.Partition
}

// A candidate whose dead letters are within the limit is still clearly worse than live when it has worseFrom of them, twice
// live's share, and a tenth of the limit.
const worseFrom = 10

// deadCount is how many records and dead letters a version had at a moment.
type deadCount struct {
	at            time.Time
	records, dead int64
}

// sample reads how far a version is, positions first and the ends after, judges it and writes both down.
func (w *watch) sample(ctx context.Context, st *state) (sampled, error) {
	var out sampled
	var err error
	if out.positions, err = w.c.Positions.Positions(ctx, w.c.Pool, st.ref()); err != nil {
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
	out.facts = facts
	rows := make([]observed, 0, len(out.positions))
	judged := make([]Judged, 0, len(out.positions))
	now := w.c.Now()
	for _, p := range out.positions {
		s := compose(st, p, facts, why)
		s.Queued, s.Live = queued, live[p.Partition]
		t := w.track(p.Partition)
		if s.Unknown == "" {
			t.observe(now, &s)
		}
		j := Judge(s, st.spec.Ready)
		judged = append(judged, j)
		rows = append(rows, t.observation(s, p, j))
		if out.fault.Kind == job.FaultNone && s.Fault.Kind != job.FaultNone {
			out.fault, out.at = s.Fault, s.Partition
		}
	}
	out.verdict = w.overall(st, now, judged, out.positions, liveDead)
	if err := w.age(ctx, st, rows); err != nil {
		return out, err
	}
	if err := w.warn(ctx, st, rows); err != nil {
		return out, err
	}
	// The verdict first: how young it is is told by the samples, so it must never be older than they are.
	down := out.fault.Kind != job.FaultNone && !candidate(st.Phase)
	if err := setVerdict(ctx, w.c.Pool, st, out.verdict, down); err != nil {
		return out, err
	}
	if err := writeObservations(ctx, w.c.Pool, st, rows); err != nil {
		return out, err
	}
	return out, w.keepLag(ctx, st, rows)
}

// ask asks the brokers, and says why when they do not answer for all topics.
func (w *watch) ask(ctx context.Context, st *state) (facts []job.PartitionFacts, why string) {
	limited, cancel := context.WithTimeout(ctx, w.c.config.AskTimeout)
	defer cancel()
	facts, err := w.c.Topics.Offsets(limited, st.spec.Source.Topics)
	if err != nil {
		return facts, fmt.Sprintf("the brokers did not say where the log ends: %v", err)
	}
	return facts, ""
}

// compose puts a position and what the brokers say of its partition together.
func compose(st *state, p job.Position, facts []job.PartitionFacts, why string) Sample {
	s := Sample{
		Partition: p.Partition, Phase: st.Phase, Paused: st.PausedAt != nil, Fault: p.Fault, Owned: p.Owner != "",
		Position: p.Next, Remaining: p.Remaining, FrozenEnd: p.FrozenEnd, Unknown: why,
	}
	if why == "" {
		s.Unknown = "the brokers do not know this partition"
	}
	for _, f := range facts {
		switch {
		case f.Topic != p.Topic || f.ID != p.ID:
		case f.Err != nil:
			s.Unknown = fmt.Sprintf("unknown: %v", f.Err)
		case f.TopicID != p.TopicID:
			s.Unknown = ""
			if s.Fault.Kind == job.FaultNone || s.Fault.Kind == job.FaultMissing { // it was gone, and is another one now
				s.Fault = job.Fault{Kind: job.FaultRecreated, Detail: fmt.Sprintf("its id was %s and is %s", p.TopicID, f.TopicID)}
			}
		case f.End < 0 || f.LastStable < 0 || f.Start < 0:
			s.Unknown = "the brokers did not say where the log ends"
		default:
			s.Unknown, s.LogStart, s.LastStable, s.End = "", f.Start, f.LastStable, f.End
		}
	}
	return s
}

// livePositions are those a candidate is compared with; none when live is down, for then it is no measure.
func (w *watch) livePositions(ctx context.Context, st *state) (map[job.Partition]*int64, *deadCount, error) {
	live := st.liveRef()
	if live == nil || st.isLive() {
		return nil, nil, nil
	}
	positions, err := w.c.Positions.Positions(ctx, w.c.Pool, *live)
	if err != nil {
		return nil, nil, err
	}
	dead := &deadCount{}
	out := make(map[job.Partition]*int64, len(positions))
	for _, p := range positions {
		if p.Fault.Kind == job.FaultNone {
			out[p.Partition] = &p.Next
		}
		dead.records, dead.dead = dead.records+p.Records, dead.dead+p.DeadLetters
	}
	return out, dead, nil
}

// queued says why a replay has not begun: the server's budget is used up by earlier ones.
func (w *watch) queued(ctx context.Context, st *state) (string, error) {
	if st.Phase != job.Replaying {
		return "", nil
	}
	n, err := w.c.Queue.Before(ctx, w.c.Pool, st.ref())
	limit := w.c.config.Replays
	if err != nil || n < limit {
		return "", err
	}
	text := fmt.Sprintf("queued: %d replays run, limit %d (agent.replays)", limit, limit)
	if n > limit {
		text += fmt.Sprintf("; %d before it in the queue", n-limit)
	}
	return text, nil
}

// seed takes over what an earlier controller saw, once.
func (w *watch) seed(ctx context.Context, st *state) error {
	if w.seeded {
		return nil
	}
	seeds, err := readSeeds(ctx, w.c.Pool, st)
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
		w.track(job.Partition{Topic: r.Topic, TopicID: id, ID: r.Partition}).seed(at, *r.Position, *r.EndOffset, lag)
	}
	w.seeded = true
	if st.Verdict == job.Ready && len(seeds) > 0 && freshSeeds(seeds) {
		w.good = w.c.Now().Add(-st.spec.Ready.StableFor) // it was stable, and nobody saw it otherwise
	}
	return nil
}

func freshSeeds(seeds []seedRow) bool {
	for _, r := range seeds {
		if r.Age > staleAfter.Seconds() {
			return false
		}
	}
	return true
}

func (w *watch) track(p job.Partition) *track {
	t, ok := w.tracks[p]
	if !ok {
		t = &track{}
		w.tracks[p] = t
	}
	return t
}

// observation is a sample as it is written down.
func (t *track) observation(s Sample, p job.Position, j Judged) observed {
	o := observed{
		TopicID: s.TopicID.String(), Topic: s.Topic, Partition: s.ID, Position: s.Position, RecordTime: p.RecordTime,
		Verdict: j.Verdict, Reason: j.Reason, partition: s.Partition,
	}
	if s.Unknown != "" || s.Fault.Kind == job.FaultRecreated || s.Fault.Kind == job.FaultMissing || s.End < s.Position {
		return o
	}
	unread := s.Unread()
	o.LogStart, o.LastStable, o.End, o.Lag = &s.LogStart, &s.LastStable, &s.End, &unread
	if !s.replaying() {
		seconds := s.LagTime.Seconds()
		o.LagSeconds = &seconds
	}
	if read, produced, ok := t.rates(); ok {
		o.ReadRate, o.ProduceRate = &read, &produced
	}
	return o
}

// overall judges the version and keeps since when it is within its limits.
func (w *watch) overall(st *state, now time.Time, judged []Judged, positions []job.Position, live *deadCount) Judged {
	ok := len(judged) > 0
	for _, j := range judged {
		ok = ok && within(j.Verdict)
	}
	switch {
	case !ok:
		w.good = time.Time{}
	case w.good.IsZero():
		w.good = now
	}
	whole := Whole{Phase: st.Phase, StableFor: st.spec.Ready.StableFor, Sick: w.sick(st, now, positions, live)}
	if ok {
		whole.Good = now.Sub(w.good)
	}
	return Overall(judged, whole)
}

// sick says when too many records could not be processed.
func (w *watch) sick(st *state, now time.Time, positions []job.Position, live *deadCount) string {
	n := deadCount{at: now}
	for _, p := range positions {
		n.records += p.Records
		n.dead += p.DeadLetters
	}
	w.dead = append(w.dead, n)
	for len(w.dead) > 1 && now.Sub(w.dead[1].at) >= deadWindow {
		w.dead = w.dead[1:]
	}
	if len(w.dead) > 1200 { // one sample in two is enough
		for i := 1; 2*i < len(w.dead); i++ {
			w.dead[i] = w.dead[2*i]
		}
		w.dead = w.dead[:len(w.dead)/2]
	}
	records, dead := n.records, n.dead
	if !candidate(st.Phase) {
		records, dead = n.records-w.dead[0].records, n.dead-w.dead[0].dead
	}
	return tooManyDead(st, deadCount{records: records, dead: dead}, live)
}

// tooManyDead judges the dead letters of a version, and of a candidate beside those of live.
func tooManyDead(st *state, n deadCount, live *deadCount) string {
	limit, share := st.spec.Source.OnError.Max, n.share()
	why := fmt.Sprintf(": kappactl status %s shows why", st.Job)
	switch {
	case max(n.records, n.dead) < deadFrom:
	case share > limit:
		return fmt.Sprintf("%s of %s records could not be processed (%.3g%%, on_error allows %.3g%%)", grouped(n.dead), grouped(n.records), 100*share, 100*limit) + why
	case candidate(st.Phase) && live != nil && max(live.records, live.dead) >= deadFrom &&
		n.dead >= worseFrom && share > 2*live.share() && share >= limit/10:
		return fmt.Sprintf("%s of %s records could not be processed (%.3g%%), and only %.3g%% in live", grouped(n.dead), grouped(n.records), 100*share, 100*live.share()) + why
	}
	return ""
}

func (n deadCount) share() float64 { return float64(n.dead) / float64(max(n.records, n.dead, 1)) }

// follow gives partitions that appeared since a place to start from, their first offset.
func (w *watch) follow(ctx context.Context, st *state, s sampled) (int, error) {
	fresh := appeared(s.positions, s.facts)
	if len(fresh) == 0 {
		return 0, nil
	}
	err := w.c.Pool.ReadCommitted(ctx, func(tx *pg.Tx) error {
		if err := fence(ctx, tx, st); err != nil {
			return err
		}
		if st.Phase == job.Replaying {
			if err := w.c.Replays.Extend(ctx, tx, st.ref(), fresh); err != nil {
				return err
			}
		} else {
			for _, f := range fresh {
				if err := w.c.Positions.Follow(ctx, tx, st.ref(), f); err != nil {
					return err
				}
			}
		}
		return addEvent(ctx, tx, st.entry("partition", "%d partitions were added, read from their first offset; keys may have moved between partitions", len(fresh)))
	})
	w.movedKnown = false // the warnings read it anew
	return len(fresh), err
}

// appeared are the partitions of known topics that a version has no position for, from offset 0: when the log no longer
// holds it, reading them finds the gap.
func appeared(positions []job.Position, facts []job.PartitionFacts) []job.Frozen {
	known := map[job.Partition]bool{}
	topics := map[job.TopicID]bool{}
	for _, p := range positions {
		known[p.Partition], topics[p.TopicID] = true, true
	}
	var out []job.Frozen
	for _, f := range facts {
		if f.Err == nil && topics[f.TopicID] && !known[f.Partition] && f.LastStable >= 0 {
			out = append(out, job.Frozen{Partition: f.Partition, Range: job.Range{From: 0, To: f.LastStable}, LeaderEpoch: f.LeaderEpoch})
		}
	}
	return out
}
