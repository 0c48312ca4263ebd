package reprocess

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/kappactl/kappactl/internal/job"
)

// The limits of the verdict.
const (
	stalledAfter       = 30 * time.Second // no progress with unread records
	replayStalledAfter = 2 * time.Minute  // in a replay progress shows only when a segment is done
	blockedAfter       = time.Minute      // the last stable offset stays behind the end
	convergingWithin   = time.Minute      // a lag above the limit must be smaller than it was this long ago
)

// Sample is one partition of a version at one moment: positions were read first, the facts of the broker after.
type Sample struct {
	job.Partition
	Phase     job.Phase
	Paused    bool
	Unknown   string // why the broker's facts could not be read; empty when they were
	Fault     job.Fault
	Owned     bool // a worker holds the partition, or segments of it in a replay
	Position  int64
	Remaining int64 // offsets below FrozenEnd that are not read, in a replay
	FrozenEnd int64

	LogStart, LastStable, End int64

	// What the samples before this one tell.
	LagTime time.Duration // age of the end offset that the position has not reached
	AtLeast bool          // LagTime is since the first sample, and that end may be older than any limit
	Unowned time.Duration // since a worker held it last, or it was first sampled in this phase
	Idle    time.Duration // since it last made progress
	Held    time.Duration // since the last stable offset is behind the end
	Before  *int64        // unread records convergingWithin ago; nil when not sampled that long
	Queued  string        // why the replay has not begun; empty when it has
	Live    *int64        // live's position on this partition; nil when live does not read it or is down
}

func (s Sample) replaying() bool { return s.Phase == job.Replaying || s.Phase == job.Building }

// Unread is the number of offsets that are not in the table yet.
func (s Sample) Unread() int64 {
	if s.replaying() {
		return s.Remaining + max(0, s.End-s.FrozenEnd)
	}
	return max(0, s.End-s.Position)
}

// readable is Unread without what an open transaction holds back.
func (s Sample) readable() int64 { return max(0, s.Unread()-max(0, s.End-s.LastStable)) }

// Judged is the verdict on one partition, with its reason in words.
type Judged struct {
	Verdict job.Verdict
	Reason  string
}

// Judge says whether a partition is within the limits; the first rule that matches wins. Whether it held for long enough
// is Overall's to say: Judge never returns holding.
func Judge(s Sample, limits job.ReadySettings) Judged {
	j := judge(s, limits)
	if s.Live != nil && s.Position >= *s.Live && !s.replaying() && excusable(j.Verdict) {
		return Judged{job.Ready, "as far as live, which is behind too: " + j.Reason}
	}
	return j
}

// excusable verdicts do not keep readers from a version that is no further behind than what they read now.
func excusable(v job.Verdict) bool {
	return v == job.BlockedByTxn || v == job.NotConverging || v == job.Lagging
}

func judge(s Sample, limits job.ReadySettings) Judged {
	switch {
	case s.Fault.Kind != job.FaultNone:
		// Read from our own rows: known even when the broker is not.
		return Judged{job.Unhealthy, faultWords(s.Partition, s.Fault)}
	case s.Unknown != "":
		return Judged{job.Unknown, s.Unknown}
	case s.Phase == job.Staged:
		return Judged{job.Starting, "the ranges to replay are not written yet"}
	case s.End < s.LastStable || (!s.replaying() && s.End < s.Position):
		return Judged{job.Unknown, fmt.Sprintf("the end offset read (%d) is older than the position (%d)", s.End, s.Position)}
	case s.Paused:
		return Judged{job.Stalled, "paused"}
	case s.replaying():
		return judgeReplay(s)
	case !s.Owned && s.Unowned < stalledAfter:
		return Judged{job.Starting, "no worker has taken it yet"}
	case !s.Owned:
		return Judged{job.Stalled, "no worker reads it"}
	}
	return judgeLive(s, limits)
}

func judgeReplay(s Sample) Judged {
	switch {
	case s.Queued != "":
		return Judged{job.Starting, s.Queued}
	case s.Remaining > 0 && s.Idle >= replayStalledAfter:
		return Judged{job.Stalled, fmt.Sprintf("no segment was finished for %s with %s records unread", words(s.Idle), grouped(s.Unread()))}
	case s.Phase == job.Building:
		return Judged{job.ReplayingRanges, "the table is being built"}
	case s.Remaining == 0 && s.End <= s.FrozenEnd:
		return Judged{job.ReplayingRanges, "the frozen range is read"}
	}
	return Judged{job.ReplayingRanges, fmt.Sprintf("%s of the frozen range and %s behind it to go", grouped(s.Remaining), grouped(max(0, s.End-s.FrozenEnd)))}
}

func judgeLive(s Sample, limits job.ReadySettings) Judged {
	unread, held := s.Unread(), s.End-s.LastStable
	behind := fmt.Sprintf("%s records, %s behind", grouped(unread), words(s.LagTime))
	if s.AtLeast {
		behind = fmt.Sprintf("%s records behind, for %s at least", grouped(unread), words(s.LagTime))
	}
	within := unread == 0 || (!s.AtLeast && s.LagTime <= limits.MaxLagTime) || (limits.MaxLag > 0 && unread <= limits.MaxLag)
	switch {
	case held > 0 && s.Held >= blockedAfter:
		return Judged{job.BlockedByTxn, fmt.Sprintf("%s readable, %s held behind an open transaction for %s", grouped(s.readable()), grouped(held), words(s.Held))}
	case s.readable() > 0 && s.Idle >= stalledAfter:
		return Judged{job.Stalled, fmt.Sprintf("no progress for %s; %s", words(s.Idle), behind)}
	case within && unread == 0:
		return Judged{job.Ready, "everything is read"}
	case within:
		return Judged{job.Ready, behind}
	case held > 0 && s.readable() == 0:
		return Judged{job.Lagging, fmt.Sprintf("%s held behind an open transaction for %s", grouped(held), words(s.Held))}
	case s.Before != nil && unread >= *s.Before:
		return Judged{job.NotConverging, fmt.Sprintf("%s; it was %s a minute ago", behind, grouped(*s.Before))}
	}
	return Judged{job.Lagging, behind}
}

// recreatedWords begin the reason of a partition whose topic was made again.
const recreatedWords = "topic recreated: "

// faultWords names the partition, the offsets and the cause.
func faultWords(p job.Partition, f job.Fault) string {
	at := p.String()
	if f.To > f.From {
		at += " " + job.Range{From: f.From, To: f.To}.String()
	} else if f.From > 0 {
		at += fmt.Sprintf("@%d", f.From)
	}
	switch f.Kind {
	case job.FaultGap:
		return "gap " + at + detail(f.Detail, "the log no longer holds these offsets")
	case job.FaultRecreated:
		return recreatedWords + at + detail(f.Detail, "the topic was deleted and made again")
	case job.FaultMissing:
		return "topic missing: " + at + detail(f.Detail, "the topic is gone")
	case job.FaultTooLarge:
		return "record too large: " + at + detail(f.Detail, "the record is over the client's limits")
	case job.FaultQuery:
		return "query error: " + at + detail(f.Detail, "the query raised an error")
	case job.FaultRecord:
		return "record error: " + at + detail(f.Detail, "a record cannot be processed and on_error is fail")
	case job.FaultNone:
	}
	return at + detail(f.Detail, string(f.Kind))
}

func detail(text, otherwise string) string {
	if text == "" {
		text = otherwise
	}
	return ": " + text
}

// faultCode is the exit code of a version that has this fault.
func faultCode(k job.FaultKind) job.ExitCode {
	switch k {
	case job.FaultGap, job.FaultRecreated:
		return job.ExitGap
	case job.FaultNone, job.FaultMissing, job.FaultTooLarge, job.FaultQuery, job.FaultRecord:
	}
	return job.ExitUnhealthy
}

// fatal faults end a candidate: the same records meet the same query again however often it is tried.
func fatal(k job.FaultKind) bool { return k == job.FaultQuery || k == job.FaultRecord }

// Whole is what a version is judged by beside its partitions.
type Whole struct {
	Phase job.Phase
	// Sick is why the version as a whole is unhealthy, as too many dead letters; empty when it is not.
	Sick string
	// Good is for how long every partition has been within its limits without a break.
	Good      time.Duration
	StableFor time.Duration
}

// Overall is the verdict on a version: the worst of its partitions, in the order of job.Verdicts. Partitions that are
// within the limits are holding until that was so for StableFor.
func Overall(parts []Judged, w Whole) Judged {
	if w.Sick != "" {
		return Judged{job.Unhealthy, w.Sick}
	}
	if len(parts) == 0 {
		if w.Phase == job.Staged {
			return Judged{job.Starting, "the ranges to replay are not written yet"}
		}
		return Judged{job.Unknown, "no partition is known"}
	}
	order := job.Verdicts()
	worst, count := parts[0], 0
	for _, p := range parts {
		if slices.Index(order, p.Verdict) < slices.Index(order, worst.Verdict) {
			worst = p
		}
	}
	for _, p := range parts {
		if p.Verdict == worst.Verdict {
			count++
		}
	}
	if worst.Verdict == job.Ready {
		return holding(w, parts)
	}
	if count > 1 {
		worst.Reason = fmt.Sprintf("%s (and %s more)", worst.Reason, plural(int64(count-1), "partition", "partitions"))
	}
	return worst
}

func holding(w Whole, parts []Judged) Judged {
	if w.Good < w.StableFor {
		return Judged{job.Holding, fmt.Sprintf("within the limits for %s of %s", words(w.Good), words(w.StableFor))}
	}
	return Judged{job.Ready, plural(int64(len(parts)), "partition", "partitions") + " within the limits"}
}

// within says that a verdict is no reason to wait but for the stable period.
func within(v job.Verdict) bool { return v == job.Ready || v == job.Holding }

// grouped prints a count with a comma before each three digits, as it stands in tables too.
func grouped(n int64) string { return humanize.Comma(n) }

// words prints a duration to the second, or to the millisecond below one.
func words(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	text := d.Round(time.Second).String()
	if d >= time.Minute { // 24h0m0s is 24h
		if short, ok := strings.CutSuffix(text, "m0s"); ok {
			text = short + "m"
		}
		if short, ok := strings.CutSuffix(text, "h0m"); ok {
			text = short + "h"
		}
	}
	return text
}
