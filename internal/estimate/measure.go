package estimate

import (
	"math"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/mergecheck"
	"github.com/kappactl/kappactl/internal/sample"
	"github.com/kappactl/kappactl/reprocess/plan"
)

// amount is records and bytes of all ranges, and of the records that were read.
type amount struct{ records, bytes, sampled float64 }

// extend extends what the pieces of each partition hold to the whole range of the partition.
func extend(ranges []job.Frozen, pieces []sample.Piece) amount {
	type seen struct{ offsets, records, bytes float64 }
	by := map[job.Partition]seen{}
	var out amount
	for _, p := range pieces {
		s := by[p.Partition]
		by[p.Partition] = seen{s.offsets + float64(p.Len()), s.records + float64(len(p.Records)), s.bytes + float64(p.Bytes)}
		out.sampled += float64(len(p.Records))
	}
	for _, f := range ranges {
		if s := by[f.Partition]; s.offsets > 0 {
			out.records += s.records * float64(f.Len()) / s.offsets
			out.bytes += s.bytes * float64(f.Len()) / s.offsets
		}
	}
	return out
}

func parts(pieces []sample.Piece) [][]*kgo.Record {
	out := make([][]*kgo.Record, len(pieces))
	for i, p := range pieces {
		out[i] = p.Records
	}
	return out
}

// fill extends what was measured to all records. Keys grow with the records as Times says.
func (r *Replay) fill(spec *job.Spec, p plan.Deploy, total amount, m mergecheck.Measured, whole bool) {
	r.Sampled = int64(total.sampled)
	r.Records, r.Bytes = rounded(total.records), rounded(total.bytes)
	scale := 1.0
	if total.sampled > 0 {
		scale = math.Max(1, total.records/total.sampled)
	}
	r.DeadLetters, r.DeadLetterFirst = rounded(float64(m.Rejected)*scale), m.Reject
	rows := m.Times(scale)
	staged := float64(m.StagedRows)
	if !whole {
		// Each segment has its own rows: those of its share of all records.
		segments := float64(max(1, r.Segments))
		staged = math.Min(total.records, math.Max(rows, segments*m.Times(scale/segments)))
	}
	each := func(bytes, n int64) float64 { return float64(bytes) / math.Max(1, float64(n)) }
	disk, staging := rows*each(m.TableBytes, m.Rows), staged*each(m.StagedBytes, m.StagedRows)
	r.Rows, r.DiskBytes, r.StagingBytes, r.WALBytes = rounded(rows), rounded(disk), rounded(staging), rounded(disk+staging)
	seconds := m.Query.Seconds()
	switch {
	case p.Rate != nil:
		r.RecordsPerSecond, r.ETAFrom = p.Rate, "earlier replay"
	case seconds > 0 && m.Records > 0:
		rate := float64(m.Records) / seconds
		r.RecordsPerSecond, r.ETAFrom = &rate, "sample"
	default:
		return
	}
	eta := total.records/(*r.RecordsPerSecond*float64(max(1, r.Workers))) +
		m.Build.Seconds()*staged/math.Max(1, float64(m.StagedRows))
	if spec.Replay.MaxRate > 0 {
		eta = math.Max(eta, total.bytes/float64(spec.Replay.MaxRate))
	}
	r.ETASeconds = &eta
}

func rounded(v float64) *int64 {
	n := int64(math.Round(v))
	return &n
}
