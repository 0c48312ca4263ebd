package verify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
)

// span is what the version covers of one partition, and what was found there.
type span struct {
	job.Partition
	job.Range                // offsets whose effect is in the table
	epoch     int32          // leader epoch of the position
	gaps      []job.Range    // accepted, ordered; left out
	counted   []job.Range    // those of gaps that were counted before the log was cut off
	stored    []int64        // offsets of stored dead letters, ordered
	rejected  []int64        // offsets of records that cannot be processed, ordered
	refused   map[int64]bool // those of them that the query fails over, as far as known before reading
	start     int64          // first offset that is read
	next      int64          // next offset to read
}

// refuse notes a record that the query fails over.
func (s *span) refuse(offset int64) {
	if s.refused == nil {
		s.refused = map[int64]bool{}
	}
	s.refused[offset] = true
}

// letter says that a dead letter is stored for the offset.
func (s *span) letter(offset int64) bool {
	_, found := slices.BinarySearch(s.stored, offset)
	return found
}

func (s *span) place() place { return place{s.TopicID, s.ID} }

func (s *span) String() string { return s.Partition.String() + " " + s.Range.String() }

// past is offset, moved behind the accepted gaps that it is in.
func (s *span) past(offset int64) int64 {
	for _, g := range s.gaps {
		if g.From <= offset && offset < g.To {
			offset = g.To
		}
	}
	return offset
}

// covers says that the version has read this offset.
func (s *span) covers(offset int64) bool {
	return s.From <= offset && offset < s.To && s.past(offset) == offset
}

// done says that nothing more is to be read.
func (s *span) done() bool { return s.next >= s.To }

// advance moves the reading position to offset and behind gaps.
func (s *span) advance(offset int64) { s.next = s.past(max(s.next, offset)) }

// begin sets where reading starts.
func (s *span) begin(offset int64) {
	s.start = min(s.past(offset), s.To)
	s.next = s.start
}

// loss is a part of a span that the log does not hold any more.
type loss struct {
	span  *span
	why   string
	whole bool  // no part of the span can be read
	start int64 // else where the log starts
}

// losses compares spans with what the broker holds now. It says which offsets cannot be read.
func losses(spans []*span, topics []job.TopicFacts) []loss {
	var out []loss
	for _, s := range spans {
		first := s.past(s.From)
		if first >= s.To {
			continue // nothing was read, or all of it is an accepted gap
		}
		i := slices.IndexFunc(topics, func(t job.TopicFacts) bool { return t.Name == s.Topic })
		if i < 0 {
			out = append(out, gone(s, "topic %q does not exist any more", s.Topic))
			continue
		}
		if l, lost := lossIn(s, first, topics[i]); lost {
			out = append(out, l)
		}
	}
	return out
}

func lossIn(s *span, first int64, t job.TopicFacts) (loss, bool) {
	if t.ID != s.TopicID {
		return gone(s, "topic %q was deleted and made again", s.Topic), true
	}
	i := slices.IndexFunc(t.Partitions, func(p job.PartitionFacts) bool { return p.ID == s.ID })
	if i < 0 {
		return gone(s, "the partition does not exist any more"), true
	}
	switch p := t.Partitions[i]; {
	case len(s.counted) > 0:
		return gone(s, "the log was cut off after %s was counted: the results hold records that no log has", s.counted[0]), true
	case p.Err != nil:
		return gone(s, "%v", p.Err), true
	case p.End < s.To:
		return gone(s, "the log ends at %d", p.End), true
	case p.Start > first:
		missing := job.Range{From: first, To: min(p.Start, s.To)}
		return loss{span: s, why: fmt.Sprintf("%s %s is gone, the log starts at %d", s.Partition, missing, p.Start), start: p.Start}, true
	}
	return loss{}, false
}

func gone(s *span, why string, args ...any) loss {
	return loss{span: s, why: fmt.Sprintf("%s: ", s) + fmt.Sprintf(why, args...), whole: true}
}

// keepLonger is the cure where nothing tells which rows the log still holds whole.
const keepLonger = "keep the log for longer, or deploy a changed file: the new version covers only what the log holds, and that can be verified"

// refuse says what is gone and what can be done. timed says that the rows have a time key.
func refuse(ref job.Ref, lost []loss, timed bool) error {
	reasons := make([]string, len(lost))
	whole := false
	for i, l := range lost {
		reasons[i] = l.why
		whole = whole || l.whole
	}
	next := fmt.Sprintf("kappactl verify %s %s --from-log-start", ref.Job, ref.Number)
	switch {
	case whole:
		next = "deploy the job again from what the log holds"
	case !timed:
		next = keepLonger
	}
	return &job.Refusal{
		Code:  job.ExitGap,
		Cause: fmt.Sprintf("%s cannot be compared with the whole log: %s", ref, strings.Join(reasons, "; ")),
		Next:  next,
	}
}

// untimed refuses to compare what the log still holds when no key says which rows these are.
func untimed(shape job.Shape) error {
	r := &job.Refusal{Code: job.ExitGap, Cause: "the query has no time key, so nothing says which of its rows the log still holds whole"}
	switch shape {
	case job.Rollup:
		r.Next = "group by a time, such as date_trunc('hour', ts)"
	case job.Latest:
		r.Cause = "a row is the latest of its key, and whether the log still holds that record is not known: --from-log-start compares rollups with a time key only"
		r.Next = keepLonger
	default:
		r.Cause = "rows that are appended have no time key: --from-log-start compares rollups with a time key only"
		r.Next = keepLonger
	}
	return r
}

// misfiled compares the rejected records with the dead letters that were stored.
func misfiled(spans []*span) []Example {
	var out []Example
	for _, s := range spans {
		for _, offset := range s.rejected {
			if _, found := slices.BinarySearch(s.stored, offset); !found {
				out = append(out, letter(s, offset, nil, s.rejection()))
			}
		}
		for _, offset := range s.stored {
			if offset < s.start {
				continue // below the log start
			}
			if _, found := slices.BinarySearch(s.rejected, offset); !found {
				out = append(out, letter(s, offset, s.rejection(), nil))
			}
		}
	}
	return out
}

// rejection is how a dead letter looks in an example.
func (*span) rejection() map[string]*string {
	yes := "yes"
	return map[string]*string{"dead_letter": &yes}
}

func letter(s *span, offset int64, served, expected map[string]*string) Example {
	at := fmt.Sprintf("%s:%d", s.Partition, offset)
	return Example{Key: map[string]*string{"record": &at}, Served: served, Expected: expected}
}
