package ledger

// EventKind is the kind of an event in the history of a job. The kinds are part of the JSON output: they are added and
// never renamed.
type EventKind string

// The kinds of events.
const (
	EventDeploy           EventKind = "deploy"
	EventPhase            EventKind = "phase"   // a version moved to another phase
	EventWaiting          EventKind = "waiting" // a deployment cannot continue without a person
	EventExtended         EventKind = "extended"
	EventFilled           EventKind = "built.fill"
	EventKeysCounted      EventKind = "built.keys"
	EventIndexed          EventKind = "built.index"
	EventAnalyzed         EventKind = "built.analyze"
	EventPartition        EventKind = "partition" // partitions were added to a topic
	EventGapAccepted      EventKind = "gap_accepted"
	EventRetry            EventKind = "retry"
	EventRetention        EventKind = "retention"
	EventWarning          EventKind = "warning"
	EventChecksPassed     EventKind = "checks_passed" // those before the flip
	EventChecksFailed     EventKind = "checks_failed"
	EventCheckPassed      EventKind = "check_passed" // one after the flip
	EventCheckFailed      EventKind = "check_failed"
	EventCheckNoAnswer    EventKind = "check_without_answer"
	EventBeforePromote    EventKind = "before_promote"
	EventPromoted         EventKind = "promoted"
	EventRolledBack       EventKind = "rolled_back"
	EventReadersLeft      EventKind = "taken_back" // in the history of the version that an automatic rollback left
	EventNotRolledBack    EventKind = "not_rolled_back"
	EventNoRollbackNeeded EventKind = "no_rollback_needed"
	EventSettled          EventKind = "settled"
	EventSuperseded       EventKind = "superseded"
	EventApplied          EventKind = "applied" // in place, without a replay
	EventPause            EventKind = "pause"   // or resume
	EventPin              EventKind = "pin"
	EventUnpin            EventKind = "unpin"
	EventAbort            EventKind = "abort"
	EventRetire           EventKind = "retire"
	EventCleaned          EventKind = "cleaned"
	EventAdopt            EventKind = "adopt"
	EventDrop             EventKind = "drop"
	EventDropped          EventKind = "dropped"
	EventHook             EventKind = "hook"
	EventHookFailed       EventKind = "hook_failed"

	// Of the archives that a job asks for.
	EventArchiveGapAccepted EventKind = "archive_gap_accepted"
	EventArchiveResumed     EventKind = "archive_resumed"
	EventArchivePruned      EventKind = "archive_pruned"
	EventArchiveAdopted     EventKind = "archive_adopted"
	EventArchiveRebuilt     EventKind = "archive_rebuilt"
	EventArchiveLate        EventKind = "archive_late"
	EventArchiveStopped     EventKind = "archive_stopped"

	// Of the schedule of batch runs.
	EventSchedulePaused  EventKind = "schedule_paused"
	EventScheduleResumed EventKind = "schedule_resumed"
	EventScheduleMissed  EventKind = "schedule_missed"
	EventScheduleFailed  EventKind = "schedule_failed"
	EventBatchLate       EventKind = "batch_late"

	// Of the batch generations of a lambda version.
	EventBatchStarted    EventKind = "batch_started"
	EventBatchShown      EventKind = "batch_shown"
	EventBatchFailed     EventKind = "batch_failed"
	EventBatchCancelled  EventKind = "batch_cancelled"
	EventBatchRolledBack EventKind = "batch_rolled_back"
	EventBatchRemoved    EventKind = "batch_removed"

	// Of experiments between versions.
	EventABStarted EventKind = "ab_started"
	EventABWeights EventKind = "ab_weights"
	EventABPaused  EventKind = "ab_paused"
	EventABResumed EventKind = "ab_resumed"
	EventABDecided EventKind = "ab_decided"
	EventABEnded   EventKind = "ab_ended"
	EventABForgot  EventKind = "ab_forgot"
)

// EventKinds lists every EventKind.
func EventKinds() []EventKind {
	return []EventKind{
		EventDeploy, EventPhase, EventWaiting, EventExtended, EventFilled, EventKeysCounted, EventIndexed, EventAnalyzed,
		EventPartition, EventGapAccepted,
		EventRetry, EventRetention, EventWarning, EventChecksPassed, EventChecksFailed, EventCheckPassed, EventCheckFailed,
		EventCheckNoAnswer, EventBeforePromote, EventPromoted, EventRolledBack, EventReadersLeft, EventNotRolledBack,
		EventNoRollbackNeeded, EventSettled, EventSuperseded, EventApplied, EventPause, EventPin, EventUnpin, EventAbort,
		EventRetire,
		EventCleaned, EventAdopt, EventDrop, EventDropped, EventHook, EventHookFailed,
		EventArchiveGapAccepted, EventArchiveResumed, EventArchivePruned, EventArchiveAdopted, EventArchiveRebuilt,
		EventArchiveLate,
		EventArchiveStopped,
		EventSchedulePaused, EventScheduleResumed, EventScheduleMissed, EventScheduleFailed, EventBatchLate,
		EventBatchStarted, EventBatchShown, EventBatchFailed, EventBatchCancelled, EventBatchRolledBack, EventBatchRemoved,
		EventABStarted, EventABWeights, EventABPaused, EventABResumed, EventABDecided, EventABEnded, EventABForgot,
	}
}
