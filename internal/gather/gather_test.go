package gather

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

// doubled answers each number with its double, and fails when 13 is among them. asked are the sizes of what was asked together.
func doubled(moment time.Duration) (g *Gather[int, int], asked func() []int) {
	var mu sync.Mutex
	var sizes []int
	g = New(moment, time.Minute, func(_ context.Context, of []int) ([]int, error) {
		mu.Lock()
		sizes = append(sizes, len(of))
		mu.Unlock()
		out := make([]int, len(of))
		for i, n := range of {
			if n == 13 {
				return nil, errors.New("thirteen")
			}
			out[i] = 2 * n
		}
		return out, nil
	})
	return g, func() []int {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(sizes)
	}
}

// put asks all numbers at the same time.
func put(t *testing.T, g *Gather[int, int], numbers ...int) []error {
	t.Helper()
	errs := make([]error, len(numbers))
	var group sync.WaitGroup
	for i, n := range numbers {
		group.Go(func() {
			got, err := g.Put(t.Context(), n)
			if errs[i] = err; err == nil && got != 2*n {
				t.Errorf("the answer to %d is %d", n, got)
			}
		})
	}
	group.Wait()
	return errs
}

func TestQuestionsOfAMomentAreAskedTogether(t *testing.T) {
	g, asked := doubled(500 * time.Millisecond)
	numbers := make([]int, 12)
	for i := range numbers {
		numbers[i] = i
	}
	if err := errors.Join(put(t, g, numbers...)...); err != nil {
		t.Fatal(err)
	}
	if sizes := asked(); !slices.Equal(sizes, []int{12}) {
		t.Errorf("asked in portions of %v", sizes)
	}
	if err := errors.Join(put(t, g, 1)...); err != nil {
		t.Fatal(err)
	}
	if sizes := asked(); len(sizes) != 2 {
		t.Errorf("a question after the answer was not asked again: %v", sizes)
	}
}

func TestAQuestionThatFailsDoesNotStopTheOthers(t *testing.T) {
	g, _ := doubled(200 * time.Millisecond)
	errs := put(t, g, 1, 13, 2)
	if errs[0] != nil || errs[1] == nil || errs[2] != nil {
		t.Errorf("%v, want only the second to fail", errs)
	}
}

func TestWhoStopsWaitingLeavesTheOthersTheirAnswers(t *testing.T) {
	g, _ := doubled(time.Hour) // until who came first no longer waits
	first, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { _, _ = g.Put(first, 1) })
	for g.waiting() < 1 {
		runtime.Gosched()
	}
	group.Go(func() {
		if got, err := g.Put(t.Context(), 2); got != 4 || err != nil {
			t.Errorf("%d, %v", got, err)
		}
	})
	for g.waiting() < 2 {
		runtime.Gosched()
	}
	stop()
	group.Wait()
}
