package e2e_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the generated part of docs/reliability.md")

// fault is one row of the table in docs/reliability.md: what goes wrong, when, and how it ends. A test asserts it.
type fault struct {
	what, when string
	does       string // what the product does about it
	code       int    // the exit code of the command that is told; 0: everything ends equal to the log
	says       string // words of its message
	soak       bool   // shown by make soak only: it takes long
}

// equalToTheLog is the end of a fault that costs nothing.
const equalToTheLog = "equal to the log"

func (f fault) ends() string {
	switch {
	case f.code == 0:
		return equalToTheLog
	case f.says == "":
		return fmt.Sprintf("exit %d", f.code)
	}
	return fmt.Sprintf("exit %d: “%s”", f.code, f.says)
}

// proven are the rows that a test of this process has shown.
var proven = struct {
	sync.Mutex
	rows map[string]bool
}{rows: map[string]bool{}}

// row finds a fault in the table: a test cannot show what the document does not promise.
func row(t *testing.T, what, when string) fault {
	t.Helper()
	for _, f := range faults() {
		if f.what == what && f.when == when {
			return f
		}
	}
	t.Fatalf("no row %q, %q in the fault matrix", what, when)
	return fault{}
}

func (f fault) shown() {
	proven.Lock()
	defer proven.Unlock()
	proven.rows[f.what+"\x00"+f.when] = true
}

// equalAfter compares what a job (args: its name, and a version) serves with one pass over its log, which ends a fault of the matrix.
func (w *world) equalAfter(what, when string, args ...string) {
	w.t.Helper()
	f := row(w.t, what, when)
	if f.code != 0 {
		w.t.Fatalf("the matrix has exit %d for %q, %q", f.code, what, when)
	}
	w.equal(args...)
	if !w.t.Failed() {
		f.shown()
	}
}

// toldOf checks that a command ended as the matrix says of a fault.
func toldOf(t *testing.T, o outcome, what, when string) {
	t.Helper()
	f := row(t, what, when)
	if o.code != f.code || !strings.Contains(o.stdout+o.stderr, f.says) {
		t.Fatalf("kappactl %s with %q, %q: exit %d, want %d and %q\nstdout: %s\nstderr: %s",
			strings.Join(o.args, " "), what, when, o.code, f.code, f.says, o.stdout, o.stderr)
	}
	f.shown()
}

// unproven lists the rows that no test has shown, when all tests have run: none was left out by a flag or for want of Java.
func unproven() (missing []string) {
	if _, err := exec.LookPath("java"); err != nil && os.Getenv("CI") != "true" {
		return nil
	}
	if flag.Lookup("test.run").Value.String() != "" || flag.Lookup("test.skip").Value.String() != "" {
		return nil
	}
	proven.Lock()
	defer proven.Unlock()
	for _, f := range faults() {
		if (soak || !f.soak) && !proven.rows[f.what+"\x00"+f.when] {
			missing = append(missing, f.what+", "+f.when)
		}
	}
	return missing
}

const (
	reliability = "../../docs/reliability.md"
	tableBegins = "<!-- the fault matrix: written by make docs -->\n"
	tableEnds   = "<!-- end of the fault matrix -->\n"
)

// TestReliabilityInSync compares the table of docs/reliability.md with the faults that the tests show; -update writes it.
func TestReliabilityInSync(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(reliability)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(b), tableBegins)
	_, after, ended := strings.Cut(rest, tableEnds)
	if !found || !ended {
		t.Fatalf("%s lacks the marks of its table", reliability)
	}
	want := before + tableBegins + table() + tableEnds + after
	if *update {
		if err := os.WriteFile(reliability, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Errorf("%s is not what the tests show (make docs writes it):\n%s", reliability, diff)
	}
}

func table() string {
	var out strings.Builder
	out.WriteString("| what goes wrong | when | what happens | how it ends |\n| --- | --- | --- | --- |\n")
	last := fault{}
	for _, f := range faults() {
		what, does, ends := f.what, f.does, f.ends()
		if what == last.what { // what is as in the row above is not said again
			what = ""
			if does == last.does {
				does = "″"
			}
			if ends == last.ends() {
				ends = "″"
			}
		}
		last = f
		when := f.when
		if f.soak {
			when += " †"
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %s |\n", what, when, does, ends)
	}
	return out.String()
}

// TestFaultsAreDistinct: a row that is there twice would be shown by either test.
func TestFaultsAreDistinct(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, f := range faults() {
		if id := f.what + f.when; seen[id] || f.does == "" || strings.Contains(id+f.does+f.says, "|") {
			t.Errorf("%q, %q: twice, without words, or with a bar", f.what, f.when)
		}
		seen[f.what+f.when] = true
	}
}
