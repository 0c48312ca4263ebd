// Package quietstart keeps a program that links Bubble Tea v1 from asking the terminal anything before it runs.
//
// Bubble Tea's package initialisation calls lipgloss.HasDarkBackground, which (through termenv) writes
// ESC ] 11 ; ? ESC \ ESC [ 6 n to a terminal and waits up to five seconds for the answer: in every program that links
// it, before main, whatever its command is. termenv does not ask a terminal whose TERM is dumb, nor one of screen or
// tmux.
//
// Go initialises, again and again, the package whose imports are all initialised and whose path is the first in order
// (The Go Programming Language Specification, "Program initialization"). This package imports nothing but os, and its
// path comes before github.com/muesli/termenv, which imports os as well and which lipgloss and Bubble Tea wait for. So
// its variable is initialised before any of them, and TERM is dumb while they are. main puts it back with Restore.
//
// The tests of internal/cli hold it to this: they run kappactl on a pseudo-terminal and fail at the first control code.
package quietstart

import "os"

const variable = "TERM"

// terminal is TERM as the process was given it.
var terminal = hush()

type setting struct {
	value string
	set   bool
}

func hush() setting {
	value, set := os.LookupEnv(variable)
	if os.Setenv(variable, "dumb") != nil {
		return setting{} // the terminal is asked: slow, and nothing else is wrong
	}
	return setting{value: value, set: set}
}

// Restore gives TERM the value that the process was started with. It is the first thing that main does.
func Restore() error {
	if terminal.set {
		return os.Setenv(variable, terminal.value)
	}
	return os.Unsetenv(variable)
}
