package speedlayer

import "time"

// stopwatch adds up how long its owner was at work. One goroutine owns it.
type stopwatch struct {
	now   func() time.Time
	from  time.Time
	total time.Duration
}

func (s *stopwatch) start() { s.from = s.now() }
func (s *stopwatch) stop()  { s.total += s.now().Sub(s.from) }

// timings are the seconds that the parts of a segment's replay were at work. Reading, decoding and grouping run beside
// each other; query is the time from the first request to the last row, with what each part waited for the others.
// Landing begins with the first row; all is the time of the whole.
func timings(s *stream, l *landing) map[string]float64 {
	group := l.queried - s.waiting.total - l.writing.total
	return map[string]float64{
		"read": s.reading.total.Seconds(), "decode": s.decoding.total.Seconds(), "group": max(0, group).Seconds(),
		"query": l.queried.Seconds(), "land": l.Now().Sub(l.began).Seconds(), "all": l.Now().Sub(l.opened).Seconds(),
	}
}
