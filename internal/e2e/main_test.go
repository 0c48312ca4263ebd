package e2e_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/kappactl/kappactl/internal/kafkatest"
	"github.com/kappactl/kappactl/internal/pgtest"
	"github.com/kappactl/kappactl/internal/s3test"
)

// soak makes the tests run at full size: make soak sets it.
var soak = os.Getenv("KAPPACTL_SOAK") != ""

// workspace is a folder for what all tests of this process share.
var workspace string

// parallel is how many tests run at a time unless -parallel is given: they wait for leases, brokers and processes most of the time.
const parallel = 4

func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", strconv.Itoa(max(parallel, runtime.GOMAXPROCS(0)))); err != nil {
			panic(err)
		}
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "kappactl-e2e-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	workspace = dir
	defer kafkatest.Stop()
	defer s3test.Stop()
	code := pgtest.Run(m)
	if missing := unproven(); code == 0 && len(missing) > 0 {
		fmt.Fprintf(os.Stderr, "docs/reliability.md promises what no test has shown:\n  %s\n", strings.Join(missing, "\n  "))
		code = 1
	}
	return code
}

// embedded runs a test of what agents do among themselves on the embedded broker. make soak also runs it on a real one.
func embedded(t *testing.T, f func(t *testing.T, brokers []string)) {
	t.Helper()
	if soak {
		kafkatest.Each(t, f)
		return
	}
	t.Run("embedded", func(t *testing.T) { f(t, kafkatest.Fake(t)) })
}

// binary is the kappactl under test, built once a process: with the fault points of the kill tests, without -race.
var binary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(workspace, "kappactl")
	build := exec.Command("go", "build", "-trimpath", "-tags", "duckdb_arrow,faultpoints", "-ldflags", "-w", "-o", path, "../../cmd/kappactl")
	build.Stderr = os.Stderr
	return path, build.Run()
})
