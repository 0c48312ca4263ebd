package readiness

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
)

// Start is where the results of a version begin on one partition.
type Start struct {
	job.Partition
	From int64
}

// LossKind tells how readers would lose results on one partition.
type LossKind string

// The kinds of loss.
const (
	LossLater LossKind = "later" // the candidate begins at a later offset
	// the topic was deleted and recreated: the records that live counted no longer exist
	LossRecreated LossKind = "recreated"
	LossMissing   LossKind = "missing" // the candidate does not read the partition
	LossGap       LossKind = "gap"     // a gap was accepted for the candidate, from Live.From to Candidate
)

// Loss is the range of records that readers would lose on one partition by a flip from live to the candidate.
type Loss struct {
	Live      Start
	Candidate int64 // -1 if the candidate does not read it
	Kind      LossKind
	// LiveSince and Since are the times of the records at which the two begin; nil if unknown.
	LiveSince, Since *time.Time
	// Moving replaces Candidate in the token if the start point moves by itself.
	Moving string
}

// Coverage compares where live and the candidate begin and returns what readers would lose, in a stable order. If both
// versions expire their rows (serve.keep), kept holds the first offset of the kept time per partition: a candidate that
// begins at or before it loses nothing. Otherwise kept is nil.
func Coverage(live, candidate []Start, kept map[job.Partition]int64) []Loss {
	byID := make(map[job.Partition]int64, len(candidate))
	byName := make(map[string]bool, len(candidate))
	for _, c := range candidate {
		byID[c.Partition] = c.From
		byName[c.String()] = true
	}
	var losses []Loss
	for _, l := range live {
		from, same := byID[l.Partition]
		switch first, expires := kept[l.Partition]; {
		case same && from <= l.From:
		case same && expires && from <= first:
		case same:
			losses = append(losses, Loss{Live: l, Candidate: from, Kind: LossLater})
		case byName[l.String()]:
			losses = append(losses, Loss{Live: l, Candidate: -1, Kind: LossRecreated})
		default:
			losses = append(losses, Loss{Live: l, Candidate: -1, Kind: LossMissing})
		}
	}
	return sorted(losses)
}

// sorted sorts losses by partition and offset.
func sorted(losses []Loss) []Loss {
	slices.SortFunc(losses, func(a, b Loss) int {
		return cmp.Or(cmp.Compare(a.Live.Topic, b.Live.Topic), cmp.Compare(a.Live.ID, b.Live.ID),
			cmp.Compare(a.Live.TopicID.String(), b.Live.TopicID.String()), cmp.Compare(a.Live.From, b.Live.From))
	})
	return losses
}

// Token identifies exactly these losses for --accept-shorter-history; other losses have another token. It is empty if
// nothing is lost.
func Token(losses []Loss) string {
	if len(losses) == 0 {
		return ""
	}
	var text strings.Builder
	for _, l := range losses {
		begins := strconv.FormatInt(l.Candidate, 10)
		if l.Moving != "" {
			begins = l.Moving
		}
		fmt.Fprintf(&text, "%s %d %s %d %s %s\n", l.Live.Topic, l.Live.ID, l.Live.TopicID, l.Live.From, begins, l.Kind)
	}
	sum := sha256.Sum256([]byte(text.String()))
	return hex.EncodeToString(sum[:])[:12]
}

// Moving marks the losses of a start point that moves with the clock or the log (latest, -30d). Its offset changes
// constantly, so the token of such a loss contains the hour instead.
func Moving(losses []Loss, start string, now time.Time) []Loss {
	if start != job.StartLatest && !strings.HasPrefix(start, "-") {
		return losses
	}
	out := slices.Clone(losses)
	for i := range out {
		if out[i].Kind == LossLater {
			out[i].Moving = start + " at " + now.UTC().Format("2006-01-02T15")
		}
	}
	return out
}

// Accepts reports whether the token is that of the current losses. The token of a moving start point is valid for the
// hour in which it was printed and the next.
func Accepts(token string, losses []Loss, start string, now time.Time) bool {
	return token != "" && (token == Token(losses) || token == Token(Moving(losses, start, now)) ||
		token == Token(Moving(losses, start, now.Add(-time.Hour))))
}

// OlderMost bounds the count of live's rows: a refusal must not read a large table.
const OlderMost = 100_000

// Lost describes what readers would lose by a flip, and what is known about its extent.
type Lost struct {
	Losses []Loss
	// Before is the time from which the candidate covers every partition that lost something; nil: unknown.
	Before *time.Time
	// Older is the number of rows of live's view with a time key before that, counted up to OlderMost + 1; nil: unknown
	// because of Why.
	Older *int64
	Why   reason.Reason
	// Kept is the number of rows, counted likewise, that serve.keep still shows. It uses column KeptBy, which need not
	// be the time of the records: each of these rows may have counted records below the candidate's start. Nil: keep
	// does not apply, or it is unknown.
	Kept   *int64
	KeptBy string
}

// Reason states that the candidate covers less history than live; zero if nothing is lost.
func (l Lost) Reason(live, candidate job.Ref) reason.Reason {
	if len(l.Losses) == 0 {
		return reason.Reason{}
	}
	return reason.CoversLess(live, candidate, Lines(l.Losses, live, candidate), l.Rows())
}

// Rows states how many rows of live are older than the candidate's coverage.
func (l Lost) Rows() reason.Reason {
	switch {
	case l.Kept != nil:
		return reason.RowsKept(*l.Kept, l.KeptBy)
	case l.Older == nil || l.Before == nil:
		return reason.RowsUnknown(l.Why)
	case *l.Older > OlderMost:
		return reason.RowsOlderMore(OlderMost, *l.Before)
	}
	return reason.RowsOlder(*l.Older, *l.Before)
}

func (l Loss) reason(live, candidate job.Number) reason.Reason {
	at := reason.LossAt{
		Partition: l.Live.Partition, Live: live, Candidate: candidate, LiveFrom: l.Live.From, From: l.Candidate,
	}
	switch {
	case l.Kind == LossLater && live == 0:
		return reason.LossAdopted(at, l.span())
	case l.Kind == LossLater:
		return reason.LossLater(at, l.span())
	case l.Kind == LossRecreated:
		return reason.LossRecreated(at)
	case l.Kind == LossGap:
		return reason.LossGap(at)
	}
	return reason.LossMissing(at)
}

// span returns the time range that is lost. The log may no longer hold live's start.
func (l Loss) span() reason.Reason {
	switch {
	case l.Since == nil:
		return reason.SpanUnknown()
	case l.LiveSince == nil:
		return reason.SpanBefore(*l.Since)
	}
	return reason.Span(*l.LiveSince, *l.Since)
}
