package cli

import (
	"fmt"
	"math"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess"
)

// overtaken warns of topics whose retention may delete what the replay has not read by then.
func (r planReplay) overtaken(p reprocess.Plan, now time.Time) []string {
	var out []string
	for _, t := range p.Topics {
		if r.ETASeconds == nil {
			continue
		}
		at := p.Overtaken(t.Name, *r.ETASeconds)
		if at == nil {
			continue
		}
		when := "deletes already"
		if left := at.Sub(now); left > 0 {
			when = "may begin to delete in " + render.Duration(left)
		}
		out = append(out, fmt.Sprintf("retention of topic %s %s what is replayed, and the replay takes about %s: raise %s, replay.max_rate or the workers; a replay that is overtaken ends with exit code 7",
			t.Name, when, render.Seconds(r.ETASeconds), limits(t)))
	}
	return out
}

// limits are the settings of a topic that delete.
func limits(t job.TopicFacts) string {
	switch {
	case t.RetentionBytes < 0:
		return "retention.ms"
	case t.RetentionMS < 0:
		return "retention.bytes"
	}
	return "retention.ms and retention.bytes"
}

// msDuration is a time of Kafka's settings, which may be longer than durations are.
func msDuration(ms int64) time.Duration {
	return time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}
