package speedlayer

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pgtest"
)

func TestMain(m *testing.M) {
	code := pgtest.Run(m)
	kafkatest.Stop()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			os.Stderr.WriteString("goroutines leak: " + err.Error() + "\n")
			code = 1
		}
	}
	os.Exit(code)
}
