package speedlayer

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestTheRateIsReachedAndNotExceeded goes by a clock of its own, so that it is the arithmetic that is judged, both ways: whatever the
// sizes of the pieces, the number of workers, and the time that reading itself takes.
func TestTheRateIsReachedAndNotExceeded(t *testing.T) {
	t.Parallel()
	const seconds = 60
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 5))
		now := time.Unix(0, 0)
		rate := float64(50_000 + r.IntN(50_000_000))
		b := &bucket{now: func() time.Time { return now }}
		b.set(rate)
		// Each worker reads a piece, which takes up to a third of the time that the rate leaves for it, and waits for what it owes.
		most, read := int(rate/5000)+r.IntN(int(min(rate/2, 1<<20))), 0 // in smaller pieces a minute takes millions of turns
		workers := make([]struct {
			piece int
			done  time.Time
		}, 1+r.IntN(4))
		fetch := func(i int, from time.Time) {
			n := 1 + r.IntN(most)
			takes := r.Float64() * float64(n) / rate / 3 * float64(len(workers))
			workers[i].piece, workers[i].done = n, from.Add(time.Duration(takes*float64(time.Second)))
		}
		for i := range workers {
			fetch(i, now)
		}
		for now.Sub(time.Unix(0, 0)) < seconds*time.Second {
			first := 0
			for i, w := range workers {
				if w.done.Before(workers[first].done) {
					first = i
				}
			}
			now = workers[first].done
			read += workers[first].piece
			fetch(first, now.Add(b.debt(workers[first].piece)))
		}
		got := float64(read) / seconds / rate
		if got < 0.9 || got > 1.1 {
			t.Errorf("seed %d: %d workers read %.3f times the rate of %.0f bytes a second, in pieces of up to %d", seed, len(workers), got, rate, most)
		}
	}
}

func TestWhatQueriesMaySpillIsSharedByTheSessionsThatCanBeOpen(t *testing.T) {
	t.Parallel()
	for spill, want := range map[int64]int64{0: 0, 8 << 30: 2 << 30, 1: 1 << 20} {
		if got := New(Deps{}, Config{Workers: 3, Spill: spill}).session().TempLimit; got != want {
			t.Errorf("%d over three workers and a live session: %d, want %d", spill, got, want)
		}
	}
}
