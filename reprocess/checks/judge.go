package checks

import (
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
)

// judge compares the differences with the limits of a diff check. Keys that only one version has count as changed
// unless they have their own limit.
func judge(d Diff, limit job.DiffLimit) (Outcome, reason.Reason) {
	all := d.All()
	if all == 0 {
		return Pass, reason.NoKeys()
	}
	outcome := Pass
	together := []reason.Reason{reason.KeysChanged(d.Changed)}
	counted := d.Changed
	var alone []reason.Reason
	for _, k := range []struct {
		keys    int64
		version string
		most    *float64
	}{{d.OnlyA, d.A, limit.MaxMissing}, {d.OnlyB, d.B, limit.MaxExtra}} {
		found := reason.KeysOnlyIn(k.version, k.keys)
		if k.most == nil {
			together = append(together, found)
			counted += k.keys
			continue
		}
		part := share(k.keys, all)
		alone = append(alone, reason.KeysLimited(found, part, *k.most))
		if part > *k.most {
			outcome = Fail
		}
	}
	part := share(counted, all)
	if part > limit.MaxChanged {
		outcome = Fail
	}
	return outcome, reason.Compared(together, part, all, limit.MaxChanged, alone)
}
