package reprocess

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

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
		fmt.Fprintf(&text, "%s %d %s %d %d %s\n", l.Live.Topic, l.Live.ID, l.Live.TopicID, l.Live.From, l.Candidate, l.Kind)
	}
	sum := sha256.Sum256([]byte(text.String()))
	return hex.EncodeToString(sum[:])[:12]
}

// coverageRefusal is the refusal to lose results; nil when nothing is lost or exactly this loss was accepted.
func coverageRefusal(live, candidate job.Ref, losses []Loss, accepted string) error {
	if len(losses) == 0 || accepted == Token(losses) {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s covers less history than %s, which is live: readers would lose results", candidate, live)
	for _, l := range losses {
		b.WriteString("\n  " + l.words(live.Number, candidate.Number))
	}
	b.WriteString("\ncures: set serve.keep so that only the kept time must be covered; replay from the archive (source.archive); " +
		"or accept exactly this loss")
	return &job.Refusal{
		Code: job.ExitGap, Cause: b.String(),
		Next: "kappactl deploy FILE --accept-shorter-history=" + Token(losses),
	}
}

func (l Loss) words(live, candidate job.Number) string {
	switch l.Kind {
	case LossLater:
		return fmt.Sprintf("%s: %s begins at offset %d, %s at %d (%d offsets later)", l.Live, live, l.Live.From, candidate, l.Candidate, l.Candidate-l.Live.From)
	case LossRecreated:
		return fmt.Sprintf("%s: %s begins at offset %d of a topic (id %s) that was deleted and made again; its records are gone", l.Live, live, l.Live.From, l.Live.TopicID)
	case LossMissing:
		return fmt.Sprintf("%s: %s begins at offset %d, %s does not read it", l.Live, live, l.Live.From, candidate)
	}
	return l.Live.String()
}
