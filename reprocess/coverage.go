package reprocess

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
)

// Start is where the results of a version begin on one partition.
type Start struct {
	job.Partition
	From int64
}

// LossKind is how readers would lose results on one partition.
type LossKind string

// The kinds of loss.
const (
	LossLater     LossKind = "later"     // the candidate begins at a later offset
	LossRecreated LossKind = "recreated" // the topic was deleted and made again: the records live counted are gone
	LossMissing   LossKind = "missing"   // the candidate does not read the partition
)

// Loss is what readers would lose on one partition by a flip from live to the candidate.
type Loss struct {
	Live      Start
	Candidate int64 // -1 when the candidate does not read it
	Kind      LossKind
	// LiveSince and Since are the times of the records at which the two begin; nil when they are not known.
	LiveSince, Since *time.Time
	// Moving stands for Candidate in the token when the start point moves by itself.
	Moving string
}

// Coverage compares where live and the candidate begin and returns what readers would lose, in a stable order.
// kept is, when both versions expire their rows (serve.keep), the first offset of the kept time per partition: a
// candidate that begins at or before it loses nothing. It is nil otherwise.
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
	slices.SortFunc(losses, func(a, b Loss) int {
		return cmp.Or(cmp.Compare(a.Live.Topic, b.Live.Topic), cmp.Compare(a.Live.ID, b.Live.ID),
			cmp.Compare(a.Live.TopicID.String(), b.Live.TopicID.String()))
	})
	return losses
}

// Token stands for exactly these losses: it is what --accept-shorter-history takes, and no other loss has it.
// It is empty when nothing is lost.
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

// moving marks the losses of a start point that moves with the clock or the log (latest, -30d): the offset is another one at every
// look, so the token of such a loss goes by the hour instead.
func moving(losses []Loss, start string, now time.Time) []Loss {
	if start != startLatest && !strings.HasPrefix(start, "-") {
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

// accepts says whether the token stands for the losses as they are now. That of a start point that moves is good for the hour in
// which it was printed and the one after.
func accepts(token string, losses []Loss, start string, now time.Time) bool {
	return token != "" && (token == Token(losses) || token == Token(moving(losses, start, now)) || token == Token(moving(losses, start, now.Add(-time.Hour))))
}

// refusal is the refusal to lose results; nil when nothing is lost. start is where the candidate's replay is to begin when that is
// not decided yet, else empty.
func (l Lost) refusal(live, candidate job.Ref, start string, now time.Time) error {
	if len(l.Losses) == 0 {
		return nil
	}
	return &job.Refusal{
		Code: job.ExitGap,
		Cause: fmt.Sprintf("%s covers less history than %s, which is live: readers would lose results", candidate, live) +
			l.words(live.Number, candidate.Number) +
			"\ncures: set serve.keep in both versions, so that only the kept time must be covered; replay from where the history still is " +
			"(an earlier replay.start, another topic, or the archive of a later release); or accept exactly this loss",
		Next: "kappactl deploy FILE --accept-shorter-history=" + Token(moving(l.Losses, start, now)),
	}
}

func (l Loss) words(live, candidate job.Number) string {
	if l.Kind == LossLater && live == 0 {
		return fmt.Sprintf("%s: %s, which was adopted, may hold results of the records before offset %d, where %s begins", l.Live, live, l.Candidate, candidate) + l.span()
	}
	switch l.Kind {
	case LossLater:
		return fmt.Sprintf("%s: %s begins at offset %d, %s at %d (%s offsets later)", l.Live, live, l.Live.From, candidate, l.Candidate, grouped(l.Candidate-l.Live.From)) + l.span()
	case LossRecreated:
		return fmt.Sprintf("%s: %s begins at offset %d of a topic (id %s) that was deleted and made again; its records are gone", l.Live, live, l.Live.From, l.Live.TopicID)
	case LossMissing:
		return fmt.Sprintf("%s: %s begins at offset %d, %s does not read it", l.Live, live, l.Live.From, candidate)
	}
	return l.Live.String()
}

// span is the time that is lost. The log may no longer hold where live began.
func (l Loss) span() string {
	switch {
	case l.Since == nil:
		return ", the time is unknown"
	case l.LiveSince == nil:
		return fmt.Sprintf(", everything before %s", stamp(*l.Since))
	}
	return fmt.Sprintf(", from %s to %s (%s)", stamp(*l.LiveSince), stamp(*l.Since), words(max(0, l.Since.Sub(*l.LiveSince))))
}
