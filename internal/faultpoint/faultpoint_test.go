package faultpoint

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAFaultStrikesAtTheNthPassingOnly(t *testing.T) {
	f := parse("a:2, b:1:stop,a:4:stop, wrong, c:0, c:x, d:1:other")
	var got []deed
	for range 5 {
		got = append(got, f.pass("a"))
	}
	if diff := cmp.Diff([]deed{nothing, end, nothing, freeze, nothing}, got); diff != "" {
		t.Error(diff)
	}
	if f.pass("b") != freeze || f.pass("b") != nothing {
		t.Error("b must freeze at its first passing only")
	}
	for _, name := range []string{"c", "d", "wrong", "other"} {
		if f.pass(name) != nothing {
			t.Errorf("%s must do nothing", name)
		}
	}
}

func TestNamesAreDistinct(t *testing.T) {
	seen := map[string]bool{}
	for _, n := range Names() {
		if seen[n] || !strings.Contains(n, ".") {
			t.Errorf("%q: want one name with a dot", n)
		}
		seen[n] = true
	}
}

// TestHitKillsTheProcessWhenBuiltForIt runs this test binary again with a fault set.
func TestHitKillsTheProcessWhenBuiltForIt(t *testing.T) {
	if os.Getenv("FAULTPOINT_CHILD") != "" {
		Hit("x")
		Hit("x")
		os.Exit(0)
	}
	if runtime.GOOS == "windows" {
		t.Skip("no signals")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(self, "-test.run", "^TestHitKillsTheProcessWhenBuiltForIt$")
	child.Env = append(os.Environ(), "FAULTPOINT_CHILD=1", Variable+"=x:2")
	err = child.Run()
	status, ok := child.ProcessState.Sys().(syscall.WaitStatus)
	if !ok {
		t.Fatalf("no wait status: %v", err)
	}
	if killed := status.Signaled() && status.Signal() == syscall.SIGKILL; killed != Enabled {
		t.Errorf("killed = %v, built for it = %v (%v)", killed, Enabled, err)
	}
}
