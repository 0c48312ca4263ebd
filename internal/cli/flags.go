package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/kappactl/kappactl/internal/job"
)

// choice is a flag with a fixed list of values.
type choice struct {
	value string
	of    []string
	also  []string // values that only some commands take
	given bool
}

func (c *choice) String() string { return c.value }

// Type is the type that help prints after the name of the flag.
func (c *choice) Type() string { return strings.Join(c.of, "|") }

// Set takes one of the values.
func (c *choice) Set(s string) error {
	if !slices.Contains(c.of, s) && !slices.Contains(c.also, s) {
		return fmt.Errorf("want %s", strings.Join(c.of, ", "))
	}
	c.value, c.given = s, true
	return nil
}

// duration is a flag as durations in job files: Go's, and d for days.
type duration struct {
	value time.Duration
	set   bool
}

func (d *duration) String() string {
	if !d.set && d.value == 0 {
		return ""
	}
	return d.value.String()
}

// Type is the type that help prints after the name of the flag.
func (d *duration) Type() string { return "duration" }

// Set reads 30s, 5m, 2d or 0.
func (d *duration) Set(s string) error {
	v, err := job.ParseDuration(s)
	if s == "0" {
		v, err = 0, nil
	}
	if err != nil || v < 0 {
		return errors.New("want a duration such as 30s, 5m or 2d")
	}
	d.value, d.set = v, true
	return nil
}

// waitAgentFlag adds --wait-agent to a command that needs an agent.
func waitAgentFlag(f *pflag.FlagSet, d *duration) {
	f.Var(d, "wait-agent", "wait this long for an agent to be alive, instead of ending with exit code 11")
}

// rate is a flag of records a second: 5000/s or 5000.
type rate struct{ perSecond int64 }

func (r *rate) String() string {
	if r.perSecond == 0 {
		return ""
	}
	return strconv.FormatInt(r.perSecond, 10) + "/s"
}

// Type is the type that help prints after the name of the flag.
func (r *rate) Type() string { return "N/s" }

// Set reads a whole number above 0, with or without /s.
func (r *rate) Set(s string) error {
	v, err := strconv.ParseInt(strings.TrimSuffix(s, "/s"), 10, 64)
	if err != nil || v < 1 {
		return errors.New("want records a second, such as 5000/s")
	}
	r.perSecond = v
	return nil
}
