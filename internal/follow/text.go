package follow

import (
	"fmt"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
)

// Text is the line that tells people how far a version is.
func (v Version) Text() string {
	word := string(v.Phase)
	if v.Paused {
		word += " (paused)"
	}
	if v.Phase.Ended() && v.Error != "" && !v.Followed { // the command that waits ends with the error
		word += ": " + flat(v.Error)
	}
	parts := []string{fmt.Sprintf("%s %s %s", v.Job, v.Version.Version, word)}
	if v.Phase == job.Replaying || v.Phase == job.CatchingUp {
		parts = append(parts, v.amounts()...)
	}
	if v.telling() {
		parts = append(parts, flat(v.Reason))
	}
	if v.Note != "" {
		parts = append(parts, flat(v.Note))
	}
	return strings.Join(parts, "  ")
}

// telling reports whether the reason of the verdict says more than the phase and the amounts.
func (v Version) telling() bool {
	switch {
	case v.Reason == "" || v.Phase.Ended():
		return false
	case v.Phase == job.Replaying || v.Phase == job.Building:
		return v.Verdict != job.ReplayingRanges && v.Verdict != job.Unknown
	}
	return v.Verdict != job.Ready
}

// amounts are what is known of how much is done, how fast, and when it is done.
func (v Version) amounts() []string {
	var out []string
	if left := v.LagRecords; left != nil && v.Phase == job.Replaying && v.Records+*left > 0 {
		// Two figures that need not add up: what is left is sampled once a second, what is read is fresh.
		out = append(out, fmt.Sprintf("%s read, %s to go", render.Plural(v.Records, "record"), render.Count(*left)))
	} else if left != nil {
		out = append(out, render.Plural(*left, "record")+" behind")
	}
	if v.RecordsPerSecond != nil && *v.RecordsPerSecond > 0 {
		out = append(out, render.Rate(v.RecordsPerSecond))
	}
	if v.ETASeconds != nil && *v.ETASeconds > 0 {
		out = append(out, "ETA "+render.Seconds(v.ETASeconds))
	}
	return out
}

// flat returns s on one line.
func flat(s string) string { return strings.Join(strings.Fields(s), " ") }
