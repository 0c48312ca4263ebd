package plan

import (
	"cmp"
	"slices"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
)

// nothingToReplay warns of topics that hold records of which the start point leaves nothing to replay; zero when there
// are none.
func nothingToReplay(start string, topics []job.TopicFacts, frozen []job.Frozen) reason.Reason {
	var names []string
	var held int64
	for _, t := range topics {
		replayed := slices.ContainsFunc(frozen, func(f job.Frozen) bool { return f.Topic == t.Name && f.Len() > 0 })
		var holds int64
		for _, p := range t.Partitions {
			holds += max(0, p.LastStable-p.Start)
		}
		if !replayed && holds > 0 {
			names, held = append(names, t.Name), held+holds
		}
	}
	if len(names) == 0 {
		return reason.Reason{}
	}
	return reason.NothingToReplay(cmp.Or(start, "offsets"), names, held)
}
