package faultpoint

import (
	"strconv"
	"strings"
	"sync/atomic"
)

type deed int

const (
	nothing deed = iota
	end
	freeze
)

// fault is an action at the n-th passing of a point.
type fault struct {
	at     int64
	deed   deed
	passed *atomic.Int64
}

// faults holds the actions by point. It does not change after parse; the counters are atomic.
type faults map[string][]fault

// parse parses "name:n,name:n:stop" and ignores invalid parts.
func parse(text string) faults {
	out := faults{}
	for _, item := range strings.Split(text, ",") {
		parts := strings.Split(strings.TrimSpace(item), ":")
		if len(parts) < 2 || len(parts) > 3 || (len(parts) == 3 && parts[2] != "stop") {
			continue
		}
		n, err := strconv.ParseInt(parts[1], 10, 64)
		if err != nil || n < 1 {
			continue
		}
		f := fault{at: n, deed: end, passed: &atomic.Int64{}}
		if len(parts) == 3 {
			f.deed = freeze
		}
		out[parts[0]] = append(out[parts[0]], f)
	}
	return out
}

// pass counts a passing of name and returns the action.
func (f faults) pass(name string) deed {
	do := nothing
	for _, one := range f[name] {
		if one.passed.Add(1) == one.at {
			do = one.deed
		}
	}
	return do
}
