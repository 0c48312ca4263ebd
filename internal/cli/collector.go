package cli

import (
	"os"
	"runtime/debug"
)

const (
	// An agent holds little and makes much garbage: with Go's own 100 % a replay spends a fifth of its time collecting it.
	collectAt = 400
	// Go's share of agent.memory, in percent; query sessions, which Go does not see, have 40 %. Near it garbage is
	// collected as often as needed.
	collectorShare = 60
)

// tuneCollector sets the garbage collector of this process for an agent that may use memory bytes, unless GOGC or
// GOMEMLIMIT say otherwise.
func tuneCollector(memory int64) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	if os.Getenv("GOMEMLIMIT") == "" && memory > 0 {
		debug.SetMemoryLimit(memory / 100 * collectorShare)
	}
}
