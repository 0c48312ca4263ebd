package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// usage is the CPU time and the peak resident memory of a process; 0 is this one.
func usage(pid int) (seconds float64, peak int64, err error) {
	dir := "/proc/self"
	if pid != 0 {
		dir = fmt.Sprintf("/proc/%d", pid)
	}
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return 0, 0, err
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, 0, fmt.Errorf("%s/stat has %d fields", dir, len(fields))
	}
	for _, f := range fields[11:13] { // utime and stime, in ticks of 10 ms on every Linux that Go supports
		ticks, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return 0, 0, err
		}
		seconds += ticks / 100
	}
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return seconds, kb << 10, err
		}
	}
	return 0, 0, fmt.Errorf("no VmHWM in %s/status", dir)
}
