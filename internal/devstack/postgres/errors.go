package postgres

import (
	"errors"
	"fmt"
	"strings"
)

// ErrRunning is a cluster whose server runs already, where the caller did not ask to adopt it.
var ErrRunning = errors.New("the server of this folder is already running")

// NotFoundError says that no usable server binaries are installed, and what to install.
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

// Next is what a person does about it.
func (e *NotFoundError) Next() string {
	return e.Install + "; or name the folder of the binaries with --postgres-bin or KAPPACTL_POSTGRES_BIN"
}

// StartError is a server or an initdb that ended early, with the last lines it wrote.
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

// Unwrap gives the chain behind it.
func (e *StartError) Unwrap() error { return e.Err }
