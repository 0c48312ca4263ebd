package devstack

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/leaktest"
)

// holdVariable makes the test binary run a stack on that folder until it is killed.
const holdVariable = "KAPPACTL_TEST_HOLD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdVariable); dir != "" {
		os.Exit(hold(dir))
	}
	leaktest.Main(func() int {
		defer kafkatest.Stop()
		return m.Run()
	})
}

func hold(dir string) int {
	s, err := Start(context.Background(), Config{Data: dir})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if _, err := fmt.Fprintln(os.Stdout, s.Brokers[0]); err != nil {
		return 1
	}
	if err := s.Wait(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 1
}

func testTime() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
