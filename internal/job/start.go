package job

import (
	"fmt"
	"math"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/kappactl/kappactl/internal/job/strict"
)

// The words of Replay.Start; the others are an RFC 3339 time in UTC or a duration back from now, as -30d.
const (
	StartEarliest = "earliest"
	StartLatest   = "latest"
	StartOffsets  = "offsets" // Replay.Offsets has them
)

// startValue takes earliest, latest, a time, -30d, or {offsets: {TOPIC/PARTITION: OFFSET}}.
func startValue(r *Replay) strict.Value {
	offsets := map[string]int64{}
	entries := filled("partition", strict.Named("mapping of TOPIC/PARTITION to offsets",
		func(d *strict.Document, name, path string, key *yaml.Node) (strict.Value, bool) {
			if _, ok := cutPartition(name); !ok {
				d.Refuse(key, path, fmt.Sprintf("%q is not a partition", name), "write TOPIC/PARTITION, such as pageviews/0")
				return strict.Value{}, false
			}
			var offset int64
			return strict.Then(strict.Int(&offset, 0, math.MaxInt64), func(*strict.Document, string) { offsets[name] = offset }),
				true
		}))
	entries.Schema["additionalProperties"] = strict.Schema{"type": "integer", "minimum": 0}
	return strict.Either(
		strict.Written("start point", &r.Start, parseStart),
		strict.Mapping(strict.Key{
			Name: "offsets", Required: true,
			Value: strict.Then(entries, func(*strict.Document, string) {
				r.Start, r.Offsets = StartOffsets, offsets
			}),
		}),
	)
}

func parseStart(text string) (string, error) {
	if text == StartEarliest || text == StartLatest {
		return text, nil
	}
	if back, found := strings.CutPrefix(text, "-"); found {
		if d, err := ParseDuration(back); err == nil && d > 0 {
			return text, nil
		}
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC().Format(time.RFC3339Nano), nil
		}
	}
	return "", strict.Want(fmt.Sprintf("%q is not a start point", text),
		"write earliest, latest, a time (2026-01-31T00:00:00Z), a duration back (-30d), or {offsets: {TOPIC/PARTITION: OFFSET}}")
}

// StartTime is the moment that a start point by time means, seen from now; false for the other start points.
func (r Replay) StartTime(now time.Time) (time.Time, bool) {
	if back, found := strings.CutPrefix(r.Start, "-"); found {
		d, err := ParseDuration(back)
		return now.Add(-d), err == nil
	}
	t, err := time.Parse(time.RFC3339Nano, r.Start)
	return t, err == nil
}
