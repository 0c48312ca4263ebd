//go:build !faultpoints

package faultpoint

import "time"

// Now is the time of the system.
func Now() time.Time { return time.Now() }
