package job

import "time"

// HookEvent is a moment in a deployment at which hooks run.
type HookEvent string

// The events of hooks.
const (
	HookStage         HookEvent = "stage"          // a version is staged
	HookCaughtUp      HookEvent = "caught_up"      // it is caught up, for the first time
	HookBeforePromote HookEvent = "before_promote" // readers are about to see it: a command may refuse
	HookAfterPromote  HookEvent = "after_promote"  // readers see it
	HookRollback      HookEvent = "rollback"       // readers see it again
	HookRetire        HookEvent = "retire"         // it goes away
)

// HookEvents lists every HookEvent.
func HookEvents() []HookEvent {
	return []HookEvent{HookStage, HookCaughtUp, HookBeforePromote, HookAfterPromote, HookRollback, HookRetire}
}

// HookFacts are what a hook is told. Its JSON is documented and only ever grows.
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

// HookOutcome is how one run of a hook ended.
type HookOutcome struct {
	Hook    string  `json:"hook"`
	OK      bool    `json:"ok"`
	Reason  string  `json:"reason"` // why not; empty when OK
	Output  string  `json:"output"` // its end, at most 4 kB
	Tries   int     `json:"tries"`
	Seconds float64 `json:"seconds"`
}
