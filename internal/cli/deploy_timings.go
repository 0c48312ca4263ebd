package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/kappactl/kappactl/reprocess/ledger"
)

// timingsOf is where the time of a deployment went; nil when it only flipped or that cannot be read now.
func timingsOf(ctx context.Context, c *client, d ledger.Deployment) *ledger.Timings {
	if d.FlipOnly {
		return nil
	}
	t, err := c.store.Timings(ctx, d.Ref())
	if err != nil || t.Replay == nil {
		return nil
	}
	return &t
}

// timingsLine is the timings for people: the steps that followed each other, and what the workers were busy with.
func timingsLine(t ledger.Timings) string {
	workers := steps([]step{{"read", t.Read}, {"decode", t.Decode}, {"group", t.Group}, {"land", t.Land}})
	all := steps([]step{
		{"start", t.Start},
		{"replay", t.Replay},
		{"build", t.Build},
		{"index", t.Index},
		{"analyze", t.Analyze},
		{"catch up", t.CatchUp},
		{"flip", t.Flip},
	})
	line := "time: " + strings.Join(all, ", ")
	if len(workers) > 0 {
		line += "\nreplay, over all workers: " + strings.Join(workers, ", ")
	}
	return line
}

type step struct {
	name    string
	seconds *float64
}

func steps(all []step) []string {
	var out []string
	for _, s := range all {
		if s.seconds != nil {
			out = append(out, fmt.Sprintf("%s %.2fs", s.name, *s.seconds))
		}
	}
	return out
}
