package job

import (
	"strings"
	"time"
)

// HookEvent is a moment at which hooks run.
type HookEvent string

// The events of hooks.
const (
	HookStage         HookEvent = "stage"          // a version is staged
	HookCaughtUp      HookEvent = "caught_up"      // it is caught up, for the first time
	HookBeforePromote HookEvent = "before_promote" // readers are about to see it: a command may refuse
	HookAfterPromote  HookEvent = "after_promote"  // readers see it
	HookRollback      HookEvent = "rollback"       // readers see it again
	HookRetire        HookEvent = "retire"         // it goes away
	HookBatchFailed   HookEvent = "batch_failed"   // a batch run of the live version failed
	HookBatchLate     HookEvent = "batch_late"     // two batch runs were due and readers see the results of neither

	HookArchiveLate    HookEvent = "archive_late"    // records may be deleted before they are archived
	HookArchiveStopped HookEvent = "archive_stopped" // a fault has stopped partitions of an archive
)

// HookEvents lists every HookEvent.
func HookEvents() []HookEvent {
	return []HookEvent{
		HookStage, HookCaughtUp, HookBeforePromote, HookAfterPromote, HookRollback, HookRetire, HookBatchFailed,
		HookBatchLate, HookArchiveLate,
		HookArchiveStopped,
	}
}

// HookFacts are the facts about an event that a hook receives. Its JSON is documented; fields are only added.
type HookFacts struct {
	Schema      int       `json:"schema"` // 1
	ID          int64     `json:"id"`     // of the event: the same at every repetition
	Event       HookEvent `json:"event"`
	At          time.Time `json:"at"`
	Job         Name      `json:"job"`
	Version     string    `json:"version"`  // "v3"
	Previous    *string   `json:"previous"` // the version that readers see or saw before, or null
	Deployment  *int64    `json:"deployment"`
	View        string    `json:"view"`
	Message     string    `json:"message"`
	By          string    `json:"by"`
	GitRevision string    `json:"git_revision"`
}

// HookOutcome is the result of one run of a hook.
type HookOutcome struct {
	Hook    string  `json:"hook"`
	OK      bool    `json:"ok"`
	Reason  string  `json:"reason"` // why not; empty when OK
	Output  string  `json:"output"` // its end, at most 4 kB
	Tries   int     `json:"tries"`
	Seconds float64 `json:"seconds"`
}

// mostOfLine bounds the part of a hook's output line that an error repeats, in characters.
const mostOfLine = 300

// Why returns the reason with the last line that the hook printed, which explains more than its exit status.
func (o HookOutcome) Why() string {
	lines := strings.Split(strings.TrimSpace(o.Output), "\n")
	last := []rune(strings.TrimSpace(lines[len(lines)-1]))
	if len(last) == 0 {
		return o.Reason
	}
	return o.Reason + ": " + string(last[:min(len(last), mostOfLine)])
}
