package postgres

import (
	"errors"
	"fmt"
	"strings"
)

// ErrRunning reports that the cluster's server already runs and the caller did not ask to adopt it.
var ErrRunning = errors.New("the server of this folder is already running")

// NotFoundError reports that no usable server binaries are installed, and what to install.
type NotFoundError struct {
	Unusable []string // what was found and why it cannot be used
	Install  string   // the command or package for this system
}

func (e *NotFoundError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "no PostgreSQL server binaries (postgres, initdb) of version %d or newer found", MinVersion)
	for _, u := range e.Unusable {
		b.WriteString("; " + u)
	}
	return b.String()
}

// Next returns what a person can do about it.
func (e *NotFoundError) Next() string {
	return e.Install + "; or name the folder of the binaries with --postgres-bin or KAPPACTL_POSTGRES_BIN"
}

// StartError reports a server or an initdb that ended early, with its last lines of output.
type StartError struct {
	What string
	Log  string // path, or empty
	Tail string
	Err  error
}

func (e *StartError) Error() string {
	text := e.What
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if e.Tail != "" {
		text += ": " + e.Tail
	}
	if e.Log != "" {
		text += " (log: " + e.Log + ")"
	}
	return text
}

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }
