package reprocess

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/kappactl/kappactl/internal/pgtest"
)

func TestMain(m *testing.M) {
	code := pgtest.Run(m)
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
