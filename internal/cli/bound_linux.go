package cli

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

const (
	rlimitData = 2 // RLIMIT_DATA, which package syscall does not name on every architecture

	// roomBeside is the memory of an agent's process beside twice agent.memory: stacks, code, what the allocators keep.
	roomBeside = 1 << 30
)

// boundData lets an allocation fail that takes this process far beyond agent.memory. The engine then raises an error
// over the records it works on, where the system would end the process. A lower limit that somebody has set stays.
func boundData(memory int64) error {
	if memory <= 0 {
		return nil
	}
	now, err := dataBytes()
	if err != nil {
		return fmt.Errorf("bound the memory of this process: %w", err)
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(rlimitData, &limit); err != nil {
		return fmt.Errorf("bound the memory of this process: %w", err)
	}
	limit.Cur = min(limit.Cur, uint64(now+2*memory+roomBeside)) //nolint:gosec // both are positive
	if err := syscall.Setrlimit(rlimitData, &limit); err != nil {
		return fmt.Errorf("bound the memory of this process: %w", err)
	}
	return nil
}

// dataBytes returns the memory of this process that RLIMIT_DATA counts.
func dataBytes() (int64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	const dataAt = 5 // pages of data and stack
	fields := bytes.Fields(text)
	if len(fields) <= dataAt {
		return 0, fmt.Errorf("/proc/self/statm holds %q", text)
	}
	pages, err := strconv.ParseInt(string(fields[dataAt]), 10, 64)
	return pages * int64(os.Getpagesize()), err
}
