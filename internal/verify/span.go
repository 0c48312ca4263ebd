package verify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
)

// span is the range of one partition that the version covers, with the result of its comparison.
type span struct {
	job.Partition
	job.Range                // offsets whose effect is in the table
	epoch     int32          // leader epoch of the position
	gaps      []job.Range    // accepted gaps, ordered; not read
	counted   []job.Range    // the part of gaps that was counted before the log was truncated
	stored    []int64        // offsets of stored dead letters, ordered
	rejected  []int64        // offsets of records that cannot be processed, ordered
	refused   map[int64]bool // of these, the offsets over which the query fails, as far as known before reading
	start     int64          // first offset to read
	next      int64          // next offset to read
}

// refuse records that the query fails over the record at offset.
func (s *span) refuse(offset int64) {
	if s.refused == nil {
		s.refused = map[int64]bool{}
	}
	s.refused[offset] = true
}

// hasDeadLetter reports whether a dead letter is stored for the offset.
func (s *span) hasDeadLetter(offset int64) bool {
	_, found := slices.BinarySearch(s.stored, offset)
	return found
}

func (s *span) place() place { return place{s.TopicID, s.ID} }

func (s *span) String() string { return s.Partition.String() + " " + s.Range.String() }

// past returns offset, moved past the accepted gaps that contain it.
func (s *span) past(offset int64) int64 {
	for _, g := range s.gaps {
		if g.From <= offset && offset < g.To {
			offset = g.To
		}
	}
	return offset
}

// covers reports whether the version has read this offset.
func (s *span) covers(offset int64) bool {
	return s.From <= offset && offset < s.To && s.past(offset) == offset
}

// done reports whether the span has been read completely.
func (s *span) done() bool { return s.next >= s.To }

// advance moves the read position to offset and past gaps.
func (s *span) advance(offset int64) { s.next = s.past(max(s.next, offset)) }

// begin sets where reading starts.
func (s *span) begin(offset int64) {
	s.start = min(s.past(offset), s.To)
	s.next = s.start
}

// loss is a part of a span that the log no longer holds.
type loss struct {
	span  *span
	why   string
	whole bool  // no part of the span can be read
	start int64 // otherwise, where the log starts
}

// losses compares the spans with the log and returns the offsets that cannot be read.
func losses(spans []*span, topics []job.TopicFacts) []loss {
	var out []loss
	for _, s := range spans {
		first := s.past(s.From)
		if first >= s.To {
			continue // nothing was read, or all of it is an accepted gap
		}
		i := slices.IndexFunc(topics, func(t job.TopicFacts) bool { return t.Name == s.Topic })
		if i < 0 {
			out = append(out, gone(s, "topic %q no longer exists", s.Topic))
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
		return gone(s, "topic %q was deleted and recreated", s.Topic), true
	}
	i := slices.IndexFunc(t.Partitions, func(p job.PartitionFacts) bool { return p.ID == s.ID })
	if i < 0 {
		return gone(s, "the partition no longer exists"), true
	}
	switch p := t.Partitions[i]; {
	case len(s.counted) > 0:
		return gone(s, "the log was truncated after %s was counted: the results contain records that the log no longer has",
			s.counted[0]), true
	case p.Err != nil:
		return gone(s, "%v", p.Err), true
	case p.End < s.To:
		return gone(s, "the log ends at %d", p.End), true
	case p.Start > first:
		missing := job.Range{From: first, To: min(p.Start, s.To)}
		return loss{
			span: s, why: fmt.Sprintf("%s %s is gone, the log starts at %d", s.Partition, missing, p.Start),
			start: p.Start,
		}, true
	}
	return loss{}, false
}

func gone(s *span, why string, args ...any) loss {
	return loss{span: s, why: fmt.Sprintf("%s: ", s) + fmt.Sprintf(why, args...), whole: true}
}

// keepLonger is the advice if it is unknown which rows the log still covers completely.
const keepLonger = "increase the retention, or deploy a changed file: the new version covers only what the log " +
	"holds, so it can be verified"

// refuse returns an error that names the lost offsets and what can be done. timed reports whether the rows have a time
// key.
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
		next = "deploy the job again; the new version covers what the log holds"
	case !timed:
		next = keepLonger
	}
	return &job.Refusal{
		Code:  job.ExitGap,
		Cause: fmt.Sprintf("%s cannot be compared with the whole log: %s", ref, strings.Join(reasons, "; ")),
		Next:  next,
	}
}

// untimed refuses a comparison from the log start if no key column is a time, so that the rows it covers are unknown.
func untimed(shape job.Shape) error {
	r := &job.Refusal{
		Code:  job.ExitGap,
		Cause: "the query has no time key, so it is unknown which of its rows the log still covers completely",
	}
	switch shape {
	case job.Rollup:
		r.Next = "group by a time, such as date_trunc('hour', ts)"
	case job.Latest:
		r.Cause = "each row is the latest record of its key, which the log may no longer hold: --from-log-start compares " +
			"only rollups with a time key"
		r.Next = keepLonger
	default:
		r.Cause = "appended rows have no time key: --from-log-start compares only rollups with a time key"
		r.Next = keepLonger
	}
	return r
}

// deadLetterDifferences compares the rejected records with the stored dead letters.
func deadLetterDifferences(spans []*span) []Example {
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

// rejection is the row that an example shows for a dead letter.
func (*span) rejection() map[string]*string {
	yes := "yes"
	return map[string]*string{"dead_letter": &yes}
}

func letter(s *span, offset int64, served, expected map[string]*string) Example {
	at := fmt.Sprintf("%s:%d", s.Partition, offset)
	return Example{Key: map[string]*string{"record": &at}, Served: served, Expected: expected}
}
