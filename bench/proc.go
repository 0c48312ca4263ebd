package main

import (
	"fmt"
	"net"
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

// resident is how much memory a process has now.
func resident(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kb << 10, err
		}
	}
	return 0, fmt.Errorf("no VmRSS in the status of process %d", pid)
}

// connections counts the established TCP connections of a process to servers on the ports of addresses.
func connections(pid int, addresses []string) (int, error) {
	ports := map[string]bool{}
	for _, address := range addresses {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return 0, err
		}
		n, err := strconv.Atoi(port)
		if err != nil {
			return 0, err
		}
		ports[fmt.Sprintf("%04X", n)] = true
	}
	dir := fmt.Sprintf("/proc/%d", pid)
	files, err := os.ReadDir(dir + "/fd")
	if err != nil {
		return 0, err
	}
	sockets := map[string]bool{}
	for _, f := range files {
		target, err := os.Readlink(dir + "/fd/" + f.Name())
		if inode, ok := strings.CutPrefix(target, "socket:["); err == nil && ok {
			sockets[strings.TrimSuffix(inode, "]")] = true
		}
	}
	n := 0
	for _, table := range []string{"/net/tcp", "/net/tcp6"} {
		text, err := os.ReadFile(dir + table)
		if err != nil {
			continue // without IPv6
		}
		for line := range strings.Lines(string(text)) {
			const remote, state, inode, established = 2, 3, 9, "01"
			f := strings.Fields(line)
			if len(f) <= inode || f[state] != established || !sockets[f[inode]] {
				continue
			}
			if _, port, _ := strings.Cut(f[remote], ":"); ports[port] {
				n++
			}
		}
	}
	return n, nil
}
