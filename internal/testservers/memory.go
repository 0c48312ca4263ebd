package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	// memory is where Linux keeps files in memory.
	memory = "/dev/shm"
	// enough is the least free memory, in bytes, for which temporary files go there. A run of all tests needs about a
	// third of it.
	enough = 8 << 30
)

// inMemory moves the temporary files of this process and of those that it starts to a folder in memory: a database
// costs a few hundred files to make and to drop, which takes three times the CPU time on a disk. Go's own files stay
// where they are, because the test programs are large. The returned function removes the folder. Nothing changes where
// there is too little memory.
func inMemory() (leave func(), err error) {
	if !roomy() {
		return func() {}, nil
	}
	before := os.TempDir()
	folder, err := os.MkdirTemp(memory, "kappactl-tests-")
	if err != nil {
		return func() {}, nil //nolint:nilerr // not writable for us: the usual folder is used
	}
	leave = func() {
		if err := os.RemoveAll(folder); err != nil {
			fmt.Fprintln(os.Stderr, "testservers:", err)
		}
	}
	err = errors.Join(os.Chmod(folder, 0o777|os.ModeSticky), os.Setenv("TMPDIR", folder)) // servers and tests run as other accounts, too
	if os.Getenv("GOTMPDIR") == "" {
		err = errors.Join(err, os.Setenv("GOTMPDIR", before))
	}
	if err != nil {
		leave()
		return nil, err
	}
	if !runs(folder) {
		leave()
		return func() {}, os.Setenv("TMPDIR", before)
	}
	return leave, nil
}

// roomy reports whether both the file system and the machine have enough memory.
func roomy() bool {
	var fs syscall.Statfs_t
	if syscall.Statfs(memory, &fs) != nil || uint64(fs.Bavail)*uint64(fs.Bsize) < enough { //nolint:gosec,unconvert // the types differ by system
		return false
	}
	b, err := os.ReadFile("/proc/meminfo")
	return err == nil && available(string(b)) >= enough
}

// runs reports whether programs in the folder may be run: tests build some.
func runs(folder string) bool {
	path := filepath.Join(folder, "runs")
	if os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700) != nil { //nolint:gosec // a program
		return false
	}
	defer func() { _ = os.Remove(path) }()
	return exec.Command(path).Run() == nil
}

// available is the memory in bytes that /proc/meminfo says programs may have; 0 if it does not say so.
func available(meminfo string) (bytes uint64) {
	for line := range strings.Lines(meminfo) {
		if n, err := fmt.Sscanf(line, "MemAvailable: %d kB", &bytes); err == nil && n == 1 {
			return bytes << 10
		}
	}
	return 0
}
