//go:build !linux

package cli

// boundData leaves the bound to the system's own.
func boundData(int64) error { return nil }
