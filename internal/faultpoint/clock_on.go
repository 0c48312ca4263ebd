//go:build faultpoints

package faultpoint

import (
	"os"
	"strings"
	"time"
	"unsafe"
)

// Now returns the system time, shifted by the duration in the file that KAPPACTL_CLOCK names.
func Now() time.Time {
	now := time.Now()
	file := os.Getenv(Clock)
	if file == "" {
		return now
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return now
	}
	by, err := time.ParseDuration(strings.TrimSpace(string(b)))
	if err != nil {
		return now
	}
	return stepped(now, by)
}

// monotonic is the bit of a Time's first word that marks a monotonic reading. The 33 bits after it are seconds of the
// wall clock, the last 30 nanoseconds.
const monotonic = 1 << 63

// stepped moves the wall clock of t by whole seconds and keeps its monotonic reading, as a step of the system clock
// does.
func stepped(t time.Time, by time.Duration) time.Time {
	wall := (*uint64)(unsafe.Pointer(&t))
	if *wall&monotonic == 0 {
		return t.Add(by)
	}
	*wall += uint64(int64(by/time.Second)) << 30
	return t
}
