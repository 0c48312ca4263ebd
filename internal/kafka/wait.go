package kafka

import "time"

// unanswered reports whether a partition that is due has no answer in this call yet.
func (f *Fetcher) unanswered() bool {
	now := f.now()
	for _, p := range f.order {
		if p.answered != f.call && !p.due.After(now) {
			return true
		}
	}
	return false
}

// waitTime returns how long to wait for answers: until the deadline or the end of the first back-off.
func (f *Fetcher) waitTime(deadline time.Time) time.Duration {
	now := f.now()
	for _, p := range f.order {
		if p.answered != f.call && p.due.After(now) && p.due.Before(deadline) {
			deadline = p.due
		}
	}
	return deadline.Sub(now)
}

// useful reports whether an answer contains something that the caller should get without delay.
func useful(out []Fetched) bool {
	for i := range out {
		if len(out[i].Records) > 0 || out[i].Err != nil {
			return true
		}
	}
	return false
}
