package quietstart

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

const asChild = "QUIETSTART_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(asChild) != "" {
		before := os.Getenv(variable)
		if err := Restore(); err != nil {
			panic(err)
		}
		after, set := os.LookupEnv(variable)
		if !set {
			after = "unset"
		}
		_, _ = os.Stdout.WriteString(before + " " + after)
		return
	}
	os.Exit(m.Run())
}

func TestTermIsDumbUntilItIsRestored(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, given := range []string{"TERM=xterm-256color", "TERM=", "A=B"} {
		cmd := exec.Command(self)
		cmd.Env = []string{asChild + "=1", given}
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		want := "dumb unset"
		if value, is := strings.CutPrefix(given, "TERM="); is {
			want = "dumb " + value
		}
		if string(out) != want {
			t.Errorf("%s: %q, want %q", given, out, want)
		}
	}
}
