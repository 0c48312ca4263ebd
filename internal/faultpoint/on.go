//go:build faultpoints

package faultpoint

import (
	"os"
	"sync"
	"syscall"
)

// Enabled reports whether this binary was built with the tag faultpoints.
const Enabled = true

// process counts the points that this process passes.
var process = struct {
	once   sync.Once
	faults faults
}{}

// Hit marks that the process passes the point called name, and ends or freezes it there if KAPPACTL_FAULT says so.
func Hit(name string) {
	process.once.Do(func() { process.faults = parse(os.Getenv(Variable)) })
	switch process.faults.pass(name) {
	case end:
		die(syscall.SIGKILL)
		select {} // the signal is on its way: stop here
	case freeze:
		die(syscall.SIGSTOP)
	}
}

func die(s syscall.Signal) { _ = syscall.Kill(os.Getpid(), s) }
