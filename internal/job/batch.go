package job

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/kappactl/kappactl/internal/job/strict"
)

// Batch is how the batch generations of a job of mode lambda are computed and kept.
type Batch struct {
	// Schedule is a cron expression; empty: runs begin by command only.
	Schedule string        `json:"schedule,omitempty"`
	Zone     string        `json:"zone"` // of Schedule, as time.LoadLocation takes it
	Missed   MissedPolicy  `json:"missed"`
	Overlap  OverlapPolicy `json:"overlap"`
	// MissedAfter is how late a run may begin before it counts as missed.
	MissedAfter time.Duration `json:"missed_after"`
	// KeepGenerations are kept beside the live one.
	KeepGenerations int `json:"keep_generations"`
	// FullEvery is how long runs build on the live generation before one computes from scratch; 0: each does.
	FullEvery time.Duration `json:"full_every"`
	// MaxChanged is the largest share of keys that may differ from what readers see; nil: the file leaves it to the
	// default.
	MaxChanged *float64 `json:"max_changed,omitempty"`
	// Compare reports whether a generation is compared with what readers see before it is shown.
	Compare bool `json:"compare"`
}

// MissedPolicy decides about runs that were missed.
type MissedPolicy string

// What happens to runs that were missed: the newest one runs, none does, or all do.
const (
	MissedRunOnce MissedPolicy = "run_once"
	MissedSkip    MissedPolicy = "skip"
	MissedAll     MissedPolicy = "all"
)

// OverlapPolicy decides about a run that is due while another is under way.
type OverlapPolicy string

// What happens to a run that is due while another is under way: it is left out, or one waits.
const (
	OverlapSkip     OverlapPolicy = "skip"
	OverlapQueueOne OverlapPolicy = "queue_one"
)

// DefaultBatch are the settings of a job of mode lambda whose file has no batch.
func DefaultBatch() Batch {
	return Batch{
		Zone: "UTC", Missed: MissedRunOnce, Overlap: OverlapSkip, MissedAfter: 10 * time.Minute, KeepGenerations: 2,
		Compare: true,
	}
}

// Generations are the settings of batch, or its defaults.
func (s *Spec) Generations() Batch {
	if s.Batch == nil {
		return DefaultBatch()
	}
	return *s.Batch
}

// The words of batch.compare.
const (
	compareOn  = "on"
	compareOff = "off"
)

func batchKeys(to **Batch) strict.Value {
	b := DefaultBatch()
	var share float64
	var compare string
	return strict.Then(strict.Mapping(
		strict.Key{Name: "schedule", Value: strict.Parsed("cron expression", &b.Schedule, scheduleText)},
		strict.Key{Name: "zone", Value: strict.Parsed("time zone", &b.Zone, zoneName)},
		strict.Key{Name: "missed", Value: strict.OneOf(&b.Missed, MissedRunOnce, MissedSkip, MissedAll)},
		strict.Key{Name: "overlap", Value: strict.OneOf(&b.Overlap, OverlapSkip, OverlapQueueOne)},
		strict.Key{Name: "keep_generations", Value: strict.Int(&b.KeepGenerations, 0, 100)},
		strict.Key{Name: "full_every", Value: duration(&b.FullEvery, 0, maxDays)},
		strict.Key{Name: "max_changed", Value: strict.Then(strict.Written("percentage", &share, ParsePercentage),
			func(*strict.Document, string) { b.MaxChanged = &share })},
		strict.Key{Name: "compare", Value: strict.Then(strict.OneOf(&compare, compareOn, compareOff),
			func(*strict.Document, string) { b.Compare = compare == compareOn })},
		strict.Key{Name: "missed_after", Value: duration(&b.MissedAfter, time.Second, 24*time.Hour)},
	), func(*strict.Document, string) { *to = &b })
}

// scheduleText takes a text on one line; batchlayer/schedule reads it.
func scheduleText(text string) (string, error) {
	switch {
	case strings.TrimSpace(text) == "":
		return "", strict.Want("the schedule is empty",
			`write five fields of cron ("0 2 * * *"), @daily or @every 6h, or remove it`)
	case len(text) > 200 || strings.ContainsFunc(text, unicode.IsControl):
		return "", strict.Want("the schedule does not fit", "write up to 200 characters on one line")
	}
	return text, nil
}

// zoneName takes a name of the IANA database.
func zoneName(text string) (string, error) {
	if _, err := time.LoadLocation(text); err != nil || text == "" || text == "Local" {
		return "", strict.Want(fmt.Sprintf("unknown time zone %q", text),
			"write a name of the IANA database, such as UTC or Europe/Berlin")
	}
	return text, nil
}
