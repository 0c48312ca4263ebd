package speedlayer

import "github.com/kappactl/kappactl/internal/job"

const (
	maxSegment   = 1_000_000 // the most offsets of a segment unless another SplitAt is asked for
	largeSegment = 4_000_000 // the most that can be asked for
)

// cut divides r into segments of at most limit offsets that tile it: each begins where the one before ends. The lengths
// differ by at most one, so that no worker is left with a stub while another has a full one. A limit of 0
// means maxSegment, and one above largeSegment that. An empty range has no segments.
func cut(r job.Range, limit int64) []job.Range {
	if limit <= 0 {
		limit = maxSegment
	}
	limit = min(limit, largeSegment)
	length := r.Len()
	if length == 0 {
		return nil
	}
	n := (length + limit - 1) / limit
	out := make([]job.Range, 0, n)
	from := r.From
	for i := range n {
		to := from + length/n
		if i < length%n {
			to++
		}
		out = append(out, job.Range{From: from, To: to})
		from = to
	}
	return out
}

// untiled returns the parts of whole that the given ranges, sorted by From, do not cover exactly once: holes, and what
// lies outside or twice.
func untiled(whole job.Range, sorted []job.Range) []job.Range {
	var wrong []job.Range
	at := whole.From
	for _, r := range sorted {
		switch {
		case r.From > at:
			wrong = append(wrong, job.Range{From: at, To: r.From})
		case r.From < at:
			wrong = append(wrong, job.Range{From: r.From, To: min(at, r.To)})
		}
		at = max(at, r.To)
	}
	switch {
	case at < whole.To:
		wrong = append(wrong, job.Range{From: at, To: whole.To})
	case at > whole.To:
		wrong = append(wrong, job.Range{From: max(whole.From, whole.To), To: at})
	}
	return wrong
}

// interleave orders the segments of several partitions by their place in their partition, so that the oldest part of
// every partition is read first.
func interleave[T any](partitions [][]T) []T {
	var out []T
	for place := 0; ; place++ {
		before := len(out)
		for _, p := range partitions {
			if place < len(p) {
				out = append(out, p[place])
			}
		}
		if len(out) == before {
			return out
		}
	}
}
