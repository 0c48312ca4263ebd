//go:build !faultpoints

package faultpoint

import "time"

// Now returns the system time.
func Now() time.Time { return time.Now() }
