package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pgtest"
)

// soak makes the tests run at full size: make soak sets it.
var soak = os.Getenv("KAPPACTL_SOAK") != ""

// workspace is a folder for what all tests of this process share.
var workspace string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "kappactl-e2e-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	workspace = dir
	defer kafkatest.Stop()
	code := pgtest.Run(m)
	if missing := unproven(); code == 0 && len(missing) > 0 {
		fmt.Fprintf(os.Stderr, "docs/reliability.md promises what no test has shown:\n  %s\n", strings.Join(missing, "\n  "))
		code = 1
	}
	return code
}

// binary is the kappactl under test, built once a process: with the fault points of the kill tests, without -race.
var binary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(workspace, "kappactl")
	build := exec.Command("go", "build", "-tags", "duckdb_arrow,faultpoints", "-o", path, "../../cmd/kappactl")
	build.Stderr = os.Stderr
	return path, build.Run()
})
