package job

import "time"

// Growth is the end offset of a log and how it grows.
type Growth struct {
	End              int64
	BytesPerOffset   float64
	OffsetsPerSecond float64 // negative when unknown
}

// GrowthWindow is the time over which the growth of a log is measured.
const GrowthWindow = time.Hour

// NewGrowth returns the growth of a log with that many bytes on disk, whose end was at the offset before one
// GrowthWindow ago (negative: unknown). It returns false if the log is empty, or if its start or end is unknown.
func NewGrowth(p PartitionFacts, bytes, before int64) (Growth, bool) {
	if p.Err != nil || p.End <= p.Start {
		return Growth{}, false
	}
	g := Growth{End: p.End, BytesPerOffset: float64(bytes) / float64(p.End-p.Start), OffsetsPerSecond: -1}
	if before >= 0 {
		g.OffsetsPerSecond = float64(p.End-before) / GrowthWindow.Seconds()
	}
	return g, true
}

// Deadline returns when a log that grows like this, and keeps at most limit bytes, deletes the record at an offset; nil
// if it never does, or if that is unknown.
func (g Growth) Deadline(offset, limit int64, now time.Time) *time.Time {
	const most = 100 * 365 * 24 * time.Hour
	left := float64(limit) - float64(g.End-offset)*g.BytesPerOffset
	switch {
	case left <= 0:
		return &now
	case g.OffsetsPerSecond > 0 && g.BytesPerOffset > 0:
		seconds := min(left/(g.OffsetsPerSecond*g.BytesPerOffset), most.Seconds())
		return new(now.Add(time.Duration(seconds * float64(time.Second))))
	}
	return nil
}
