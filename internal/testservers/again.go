package main

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// mostAgain is how many failed tests are run again. More than that is no accident of timing.
const mostAgain = 3

var (
	failedTest    = regexp.MustCompile(`^--- FAIL: (\S+)`)
	failedPackage = regexp.MustCompile(`^FAIL\t(\S+)\t\d`)
	// hopeless marks a failure that no second run may hide.
	hopeless = regexp.MustCompile(`^(WARNING: DATA RACE|panic: |fatal error: |FAIL\t\S+ \[)`)
)

// A failure is a package with its tests that failed.
type failure struct {
	pkg   string
	tests []string
}

// A reading passes the output of go test through to w and collects which tests failed.
type reading struct {
	w        io.Writer
	line     []byte
	tests    []string
	failures []failure
	hopeless bool
}

// Write takes the next piece of the output and passes the lines on that are whole.
func (r *reading) Write(b []byte) (int, error) {
	r.line = append(r.line, b...)
	end := bytes.LastIndexByte(r.line, '\n') + 1
	for line := range bytes.Lines(r.line[:end]) {
		r.take(string(bytes.TrimSuffix(line, []byte("\n"))))
	}
	if _, err := r.w.Write(r.line[:end]); err != nil {
		return 0, err
	}
	r.line = append(r.line[:0], r.line[end:]...)
	return len(b), nil
}

// end passes on what follows the last line.
func (r *reading) end() { _, _ = r.w.Write(r.line) }

// whole is a writer for several goroutines.
type whole struct {
	mu sync.Mutex // guards w
	w  io.Writer
}

// Write writes all of b in one piece.
func (o *whole) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.w.Write(b)
}

func (r *reading) take(line string) {
	if m := failedTest.FindStringSubmatch(line); m != nil {
		r.tests = append(r.tests, m[1])
	}
	if m := failedPackage.FindStringSubmatch(line); m != nil {
		r.failures = append(r.failures, failure{pkg: m[1], tests: r.tests})
		r.tests = nil
	}
	r.hopeless = r.hopeless || hopeless.MatchString(line)
}

// again returns the commands that run each failed test once more, alone. It returns none for a failure that cannot be
// an accident of timing: a data race, a panic, a package that was not built or tested at all, or more than mostAgain
// tests.
func (r *reading) again(args []string) [][]string {
	first := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "./") })
	if r.hopeless || first < 0 {
		return nil
	}
	var commands [][]string
	for _, f := range r.failures {
		if len(f.tests) == 0 {
			return nil
		}
		for _, test := range f.tests {
			commands = append(commands, append(slices.Clone(args[:first]), "-count=1", "-run", "^"+test+"$", f.pkg))
		}
	}
	if len(commands) > mostAgain {
		return nil
	}
	return commands
}

// heading introduces the second runs.
func heading(w io.Writer, failures []failure) {
	fmt.Fprintln(w, "\ntestservers: FLAKY OR BROKEN: these tests failed. Each is now run once more, alone."+
		" A test that passes then is flaky: mend it.")
	for _, f := range failures {
		fmt.Fprintln(w, "  "+f.pkg+": "+strings.Join(f.tests, ", "))
	}
	fmt.Fprintln(w)
}
