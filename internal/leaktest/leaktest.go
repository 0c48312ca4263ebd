// Package leaktest fails the tests of a package that leave goroutines running.
package leaktest

import (
	"fmt"
	"os"

	"go.uber.org/goleak"
)

// Main runs the tests of a package, checks for leaked goroutines and exits. run is m.Run, or ends the servers that
// the tests have started too: their goroutines would be found.
//
//	func TestMain(m *testing.M) { leaktest.Main(func() int { defer kafkatest.Stop(); return pgtest.Run(m) }) }
func Main(run func() int) {
	code := run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
