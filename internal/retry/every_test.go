package retry_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/retry"
)

func TestEveryReportsAnErrorOnceUntilItChangesOrEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	results := []error{errors.New("a"), errors.New("a"), nil, errors.New("a"), errors.New("b")}
	var reported []string
	n := 0
	retry.Every(ctx, time.Millisecond, time.Hour, func(limited context.Context) error {
		if _, bounded := limited.Deadline(); !bounded {
			t.Error("a look without a limit")
		}
		if n == len(results) {
			cancel()
			return errors.New("after the end")
		}
		n++
		return results[n-1]
	}, func(err error) { reported = append(reported, err.Error()) })
	if want := []string{"a", "a", "b"}; !slices.Equal(reported, want) {
		t.Errorf("reported %v, want %v", reported, want)
	}
}
