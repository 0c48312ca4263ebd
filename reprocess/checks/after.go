package checks

import (
	"slices"
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

// failuresToRollBack is the number of consecutive failures of a check after the flip that trigger a rollback.
const failuresToRollBack = 2

// In returns the checks of a stage: job.CheckBefore or job.CheckAfter.
func In(checks []job.Check, stage string) []job.Check {
	var out []job.Check
	for _, k := range checks {
		if k.Runs(stage) {
			out = append(out, k)
		}
	}
	return out
}

// Passed reports whether every check, as currently defined in the job file, has passed within age.
func Passed(checks []job.Check, past []Past, now time.Time, age time.Duration) bool {
	for _, k := range checks {
		fresh := func(p Past) bool {
			return p.Is(k) && p.Outcome == Pass && now.Sub(p.At) < age
		}
		if !slices.ContainsFunc(past, fresh) {
			return false
		}
	}
	return true
}

// Due returns the checks whose current definition has not run yet, and those whose interval is over.
func Due(checks []job.Check, past []Past, now time.Time, least time.Duration) []job.Check {
	var out []job.Check
	for _, k := range checks {
		recent := func(p Past) bool { return p.Is(k) && now.Sub(p.At) < max(k.Every, least) }
		if !slices.ContainsFunc(past, recent) {
			out = append(out, k)
		}
	}
	return out
}

// FailedTwice returns a check with enough consecutive failures for a rollback, or nil.
func FailedTwice(checks []job.Check, past []Past) *Past {
	for _, k := range checks {
		for i, p := range past {
			if p.Is(k) && p.Failures >= failuresToRollBack {
				return &past[i]
			}
		}
	}
	return nil
}

// Recovered reports whether the check's current definition has passed, or the check is no longer in the job file.
func Recovered(name string, checks []job.Check, past []Past) bool {
	for _, k := range checks {
		if k.Name == name {
			passed := func(p Past) bool { return p.Is(k) && p.Failures == 0 }
			return slices.ContainsFunc(past, passed)
		}
	}
	return true
}

// ChangedResults returns the results that differ from the previous run. A check that continues to fail, for example
// because no rollback is possible, counts as unchanged once it has failed often enough to decide.
func ChangedResults(results []Result, past []Past) []Result {
	var out []Result
	for _, r := range results {
		var before Past
		for _, p := range past {
			if p.Name == r.Name {
				before = p
			}
		}
		decided := r.Outcome != Fail || before.Failures >= failuresToRollBack
		if before.Outcome != r.Outcome || !decided {
			out = append(out, r)
		}
	}
	return out
}
