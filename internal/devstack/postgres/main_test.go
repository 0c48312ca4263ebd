package postgres

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// holdVariable makes the test binary run a server on that folder until it is killed.
const holdVariable = "KAPPACTL_TEST_HOLD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdVariable); dir != "" {
		os.Exit(hold(dir))
	}
	goleak.VerifyTestMain(m)
}

func hold(dir string) int {
	bin, err := Find(context.Background(), "")
	if err == nil {
		var s *Server
		s, err = Start(context.Background(), Config{Bin: bin, Data: dir, Settings: map[string]string{"fsync": "off"}, DieWithParent: true})
		if err == nil {
			_, err = fmt.Fprintln(os.Stdout, s.PID())
			<-s.Done()
		}
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}
