package tui

import (
	"math"
	"time"

	"github.com/kappactl/kappactl/reprocess/status"
)

const (
	// keepSamples bounds the curves to ten minutes at a sample a second.
	keepSamples = 600
	// smoothing is over how many samples the rate of new records is taken: single seconds jump.
	smoothing = 5
)

// sample is one version at one moment; NaN is unknown.
type sample struct {
	at             time.Time
	end, lag, read float64
}

// history holds the samples of a version since the interface began, oldest first.
type history struct{ samples []sample }

// add takes over a status when it is newer than the last one.
func (h *history) add(v status.Version) {
	at := sampledAt(v)
	if at.IsZero() || len(h.samples) > 0 && !at.After(h.samples[len(h.samples)-1].at) {
		return
	}
	s := sample{at: at, end: math.NaN(), lag: math.NaN(), read: math.NaN()}
	if v.End != nil {
		s.end = float64(*v.End)
	}
	if v.LagRecords != nil {
		s.lag = float64(*v.LagRecords)
	}
	if v.RecordsPerSecond != nil {
		s.read = *v.RecordsPerSecond
	}
	h.samples = append(h.samples, s)
	if over := len(h.samples) - keepSamples; over > 0 {
		h.samples = h.samples[over:]
	}
}

func sampledAt(v status.Version) time.Time {
	var newest time.Time
	for _, p := range v.Partitions {
		if p.SampledAt.After(newest) {
			newest = p.SampledAt
		}
	}
	return newest
}

// reads are the records read a second.
func (h *history) reads() []float64 {
	return h.each(func(i int) float64 { return h.samples[i].read })
}

// lags are the unread records.
func (h *history) lags() []float64 {
	return h.each(func(i int) float64 { return h.samples[i].lag })
}

// made are the records a second that arrive in the topics, from how their ends move.
func (h *history) made() []float64 {
	return h.each(func(i int) float64 {
		from := max(0, i-smoothing)
		for ; from < i; from++ {
			a, b := h.samples[from], h.samples[i]
			if rate := (b.end - a.end) / b.at.Sub(a.at).Seconds(); !math.IsNaN(rate) && rate >= 0 {
				return rate
			}
		}
		return math.NaN()
	})
}

func (h *history) each(f func(int) float64) []float64 {
	if h == nil {
		return nil
	}
	out := make([]float64, len(h.samples))
	for i := range out {
		out[i] = f(i)
	}
	return out
}

// latest is the last value of a series, nil when it is unknown.
func latest(values []float64) *float64 {
	if len(values) == 0 || math.IsNaN(values[len(values)-1]) {
		return nil
	}
	return &values[len(values)-1]
}

// span is how long the samples reach back.
func (h *history) span() time.Duration {
	if h == nil || len(h.samples) < 2 {
		return 0
	}
	return h.samples[len(h.samples)-1].at.Sub(h.samples[0].at)
}
