package reprocess

import (
	"context"
	"fmt"
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

// agesEvery is how often a version that is behind asks how old what it has not read is, and behindFrom from which lag on.
const (
	agesEvery  = time.Minute
	behindFrom = time.Minute
)

// leftSteps are the times to deletion at which the log is asked for its offsets, beside the whole retention: close together where it
// is soon.
func leftSteps() []time.Duration {
	return []time.Duration{
		0, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
		24 * time.Hour, 2 * 24 * time.Hour, 4 * 24 * time.Hour, 8 * 24 * time.Hour, 16 * 24 * time.Hour,
	}
}

// ages say when retention begins to delete what lies at an offset, as estimated at one moment.
type ages struct {
	at     time.Time
	topics map[string]job.TopicFacts
	steps  map[job.Partition][]ageStep
	sizes  map[job.Partition]sized
}

// ageStep is the first offset that is not deleted before a time, as far as it goes by time.
type ageStep struct {
	offset int64
	until  time.Time
}

// sized is how a log grows.
type sized struct {
	end       int64
	each      float64 // bytes of one offset
	perSecond float64 // offsets; negative when unknown
}

// deadline is when the record at an offset may be deleted at the earliest: by time or by size, whichever comes first; nil when its
// topic keeps it for ever, or when it is not known. It is a lower bound: Kafka deletes whole files of the log, by their newest record.
func (a ages) deadline(p job.Partition, offset int64) *time.Time {
	var first *time.Time
	sooner := func(t time.Time) {
		if first == nil || t.Before(*first) {
			first = &t
		}
	}
	steps := a.steps[p]
	for i := len(steps) - 1; i >= 0; i-- {
		if steps[i].offset <= offset {
			sooner(steps[i].until)
			break
		}
		if i == 0 {
			sooner(a.at) // older than its retention: at the next look of the broker
		}
	}
	s, known := a.sizes[p]
	if limit := a.topics[p.Topic].RetentionBytes; known && limit >= 0 {
		left := float64(limit) - float64(s.end-offset)*s.each
		switch {
		case left <= 0:
			sooner(a.at)
		case s.perSecond > 0:
			sooner(a.at.Add(secondsOf(left / (s.perSecond * s.each))))
		}
	}
	return first
}

// overtaken is when what a replay of the range from now on has not read yet may be deleted; nil when it is read in half of the time
// that is left, everywhere. It goes from the oldest offset to the newest in that many steps. What is older than its retention lies
// there until the broker looks, so that each step has a minute at least: most topics have such records all the time.
func (a ages) overtaken(f job.Frozen, takes time.Duration) *time.Time {
	const steps = 16
	for step := range int64(steps) {
		d := a.deadline(f.Partition, f.From+f.Len()*step/steps)
		if d == nil || f.From >= f.To {
			continue
		}
		if readBy := takes / steps * time.Duration(step+1); 2*readBy > max(d.Sub(a.at), time.Minute) {
			return d
		}
	}
	return nil
}

// secondsOf is a duration that never overflows.
func secondsOf(s float64) time.Duration {
	const most = 100 * 365 * 24 * time.Hour
	if s > most.Seconds() {
		return most
	}
	return time.Duration(s * float64(time.Second))
}

// askAges asks the brokers. Topics that keep everything are not asked about.
func askAges(ctx context.Context, topics Topics, names []string, now time.Time) (ages, error) {
	a := ages{at: now, topics: map[string]job.TopicFacts{}, steps: map[job.Partition][]ageStep{}, sizes: map[job.Partition]sized{}}
	facts, err := topics.Topics(ctx, names)
	if err != nil {
		return a, fmt.Errorf("read the retention of %v: %w", names, err)
	}
	bySize := false
	for _, t := range facts {
		a.topics[t.Name] = t
		if t.RetentionMS >= 0 {
			if err := a.byTime(ctx, topics, t, now); err != nil {
				return a, err
			}
		}
		bySize = bySize || t.RetentionBytes >= 0
	}
	if bySize {
		return a, a.bySize(ctx, topics, facts, now)
	}
	return a, nil
}

// byTime finds, for each time to deletion, the first offset that has it left.
func (a ages) byTime(ctx context.Context, topics Topics, t job.TopicFacts, now time.Time) error {
	keeps := time.Duration(min(t.RetentionMS, int64(100*365*24*time.Hour/time.Millisecond))) * time.Millisecond
	for _, left := range append(leftSteps(), keeps) {
		if left > keeps {
			continue
		}
		found, err := offsetsAt(ctx, topics, []string{t.Name}, now.Add(left-keeps))
		if err != nil {
			return err
		}
		for p, offset := range found {
			a.steps[p] = append(a.steps[p], ageStep{offset: offset, until: now.Add(left)})
		}
	}
	return nil
}

// bySize finds how fast each log grows, over the last hour.
func (a ages) bySize(ctx context.Context, topics Topics, facts []job.TopicFacts, now time.Time) error {
	for _, t := range facts {
		if t.RetentionBytes < 0 {
			continue
		}
		sizes, err := topics.Sizes(ctx, []string{t.Name})
		if err != nil {
			continue // log dirs need a right that reading does not
		}
		earlier, err := offsetsAt(ctx, topics, []string{t.Name}, now.Add(-time.Hour))
		if err != nil {
			return err
		}
		for _, p := range t.Partitions {
			size, known := sizes[p.Partition]
			if !known || p.Err != nil || p.End <= p.Start {
				continue
			}
			s := sized{end: p.End, each: float64(size) / float64(p.End-p.Start), perSecond: -1}
			if from, ok := earlier[p.Partition]; ok {
				s.perSecond = float64(p.End-from) / time.Hour.Seconds()
			}
			a.sizes[p.Partition] = s
		}
	}
	return nil
}

// stillLate is by how much earlier than the deletion what is unread has to be read before an alarm of it ends: near the limit it would
// come and go with every sample.
const stillLate = 1.25

// late says that retention comes before a replay, or a version that is behind, has read what is there; empty when it does not. An end
// that is not known is late when the deletion is near. margin is 1, or stillLate while it was late before.
func late(now time.Time, deadline *time.Time, etaSeconds *float64, margin float64, what string) string {
	if deadline == nil {
		return ""
	}
	left := deadline.Sub(now)
	when := "now"
	if left > 0 {
		when = "from " + stamp(*deadline) + " on (in " + words(left) + ")"
	}
	switch {
	case etaSeconds == nil && left < 15*time.Minute:
		return fmt.Sprintf("retention deletes what is unread of %s %s, and when it will be read is not known", what, when)
	case etaSeconds != nil && secondsOf(*etaSeconds*margin) > left:
		return fmt.Sprintf("retention deletes what is unread of %s %s, before it is read (in about %s): raise retention.ms, replay.max_rate or the workers", what, when, words(secondsOf(*etaSeconds)))
	}
	return ""
}

// tombstonesLost says that deletes may be missed: the topic forgets its tombstones before the replay, which may have read the value
// already, comes to them. since is when the replay began.
func tombstonesLost(t job.TopicFacts, now, since time.Time, etaSeconds *float64) string {
	if !t.Compacted || t.DeleteRetentionMS < 0 {
		return ""
	}
	keeps := time.Duration(t.DeleteRetentionMS) * time.Millisecond
	took := now.Sub(since)
	switch {
	case took > keeps:
		return fmt.Sprintf("the replay takes %s so far and topic %s keeps tombstones for %s (delete.retention.ms): keys deleted since may stay in the table; deploy again with a faster replay or a longer delete.retention.ms",
			words(took), t.Name, words(keeps))
	case etaSeconds != nil && took+secondsOf(*etaSeconds) > keeps:
		return fmt.Sprintf("the replay will take about %s and topic %s keeps tombstones for %s (delete.retention.ms): deletes may be missed",
			words(took+secondsOf(*etaSeconds)), t.Name, words(keeps))
	}
	return ""
}
