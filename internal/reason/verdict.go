package reason

import (
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

// Codes of verdicts on a partition and on a version. Those of faults are in fault.go.
const (
	CodeRangesNotSet    Code = "ranges_not_determined"
	CodeNoOffsets       Code = "no_offsets"
	CodeNoPartition     Code = "partition_unknown"
	CodeBrokersSilent   Code = "brokers_did_not_answer"
	CodeEndOutdated     Code = "end_outdated"
	CodePaused          Code = "paused"
	CodeQueued          Code = "queued"
	CodeNoAgentYet      Code = "waiting_for_agent"
	CodeHeld            Code = "held"
	CodeNoWorkerYet     Code = "waiting_for_worker"
	CodeNoWorker        Code = "no_worker"
	CodeReplayStalled   Code = "replay_stalled"
	CodeBuilding        Code = "building"
	CodeRangeRead       Code = "range_read"
	CodeReplaying       Code = "replaying"
	CodeOpenTransaction Code = "open_transaction"
	CodeStalled         Code = "stalled"
	CodeAllRead         Code = "all_read"
	CodeBehind          Code = "behind"
	CodeBehindAtLeast   Code = "behind_at_least"
	CodeNotConverging   Code = "not_converging"
	CodeLevelWithLive   Code = "level_with_live"
	CodeNoPartitions    Code = "no_partitions"
	CodeHolding         Code = "holding"
	CodeWithinLimits    Code = "within_limits"
	CodeDeadLetters     Code = "dead_letters"
	CodeMoreDeadLetters Code = "more_dead_letters_than_live"
	CodeNotDropped      Code = "not_dropped"
	CodeVersionEnded    Code = "version_ended"
	CodeAdopted         Code = "adopted"
	CodeNoSample        Code = "no_sample"
	CodeSampleOld       Code = "sample_old"
)

func verdictTexts() map[Code]string {
	return map[Code]string{
		CodeRangesNotSet:  `the replay ranges are not determined yet`,
		CodeNoOffsets:     `the brokers returned no offsets`,
		CodeNoPartition:   `the brokers do not know this partition`,
		CodeBrokersSilent: `the brokers did not answer: {{text .cause}}`,
		CodeEndOutdated:   `the end offset that was read ({{text .end}}) is older than the position ({{text .position}})`,
		CodePaused:        `paused`,
		CodeQueued: `{{count .limit}} of {{count .limit}} replay slots in use (agent.replays)` +
			`{{if .before}}; {{count .before}} ahead in the queue{{end}}`,
		CodeNoAgentYet:    `waiting for an agent`,
		CodeHeld:          `held by deploy --until staged; deploy it again without --until to go on`,
		CodeNoWorkerYet:   `waiting for a worker`,
		CodeNoWorker:      `no worker reads it`,
		CodeReplayStalled: `no segment finished for {{duration .idle}}; {{plural .unread "record" "records"}} unread`,
		CodeBuilding:      `the table is being built`,
		CodeRangeRead:     `the replay range is read`,
		CodeReplaying:     `{{plural .left "record" "records"}} left in the replay range, then {{count .newer}} newer`,
		CodeOpenTransaction: `{{if .readable}}{{count .readable}} readable, {{end}}` +
			`{{plural .held "record" "records"}} held back by an open transaction for {{duration .held_for}}`,
		CodeStalled:       `no progress for {{duration .idle}}; {{text .behind}}`,
		CodeAllRead:       `all records are read`,
		CodeBehind:        `{{plural .unread "record" "records"}}, {{duration .lag}} behind`,
		CodeBehindAtLeast: `{{plural .unread "record" "records"}} behind, for at least {{duration .lag}}`,
		CodeNotConverging: `{{text .behind}}; {{count .before}} a minute ago`,
		CodeLevelWithLive: `level with the live version, which is also behind: {{text .cause}}`,
		CodeNoPartitions:  `no partition is known`,
		CodeHolding:       `within limits; ready in {{duration .ready_in}}`,
		CodeWithinLimits:  `{{plural .partitions "partition" "partitions"}} within limits`,
		CodeDeadLetters: `{{count .dead}} of {{plural .records "record" "records"}} could not be processed ` +
			`({{percent .share}}, on_error allows {{percent .limit}}): kappactl deadletter list {{text .job}} ` +
			`{{text .version}} shows them`,
		CodeMoreDeadLetters: `{{count .dead}} of {{plural .records "record" "records"}} could not be processed ` +
			`({{percent .share}}), and only {{percent .live}} in live: kappactl deadletter list {{text .job}} ` +
			`{{text .version}} shows them`,
		CodeNotDropped:   `waiting for the table to be dropped: {{text .cause}}`,
		CodeVersionEnded: `the version has ended`,
		CodeAdopted:      `adopted: kappactl does not write this relation`,
		CodeNoSample:     `no sample yet`,
		CodeSampleOld:    `the last sample is older than {{duration .limit}}: no agent is running this version`,
	}
}

// RangesNotSet is a version whose replay ranges are not determined yet.
func RangesNotSet() Reason { return Reason{Code: CodeRangesNotSet} }

// NoOffsets is a partition for which the brokers returned no offsets.
func NoOffsets() Reason { return Reason{Code: CodeNoOffsets} }

// NoPartition is a partition that the brokers do not know.
func NoPartition() Reason { return Reason{Code: CodeNoPartition} }

// BrokersSilent is a partition whose offsets could not be read.
func BrokersSilent(err error) Reason { return Reason{CodeBrokersSilent, Args{"cause": err.Error()}} }

// EndOutdated is an answer of the brokers that is older than what was read already.
func EndOutdated(end, position int64) Reason {
	return Reason{CodeEndOutdated, Args{"end": end, "position": position}}
}

// Paused is a paused version.
func Paused() Reason { return Reason{Code: CodePaused} }

// Queued is a replay that waits until fewer than limit replays run; before are those that begin earlier than it.
func Queued(limit, before int) Reason {
	return Reason{CodeQueued, Args{"limit": limit, "before": before}}
}

// NoAgentYet is a version that no agent has taken yet.
func NoAgentYet() Reason { return Reason{Code: CodeNoAgentYet} }

// Held is a version that its deployment holds in phase staged.
func Held() Reason { return Reason{Code: CodeHeld} }

// NoWorkerYet is a partition that no worker has taken yet.
func NoWorkerYet() Reason { return Reason{Code: CodeNoWorkerYet} }

// NoWorker is a partition that no worker has read for too long.
func NoWorker() Reason { return Reason{Code: CodeNoWorker} }

// ReplayStalled is a replay without progress for idle.
func ReplayStalled(idle time.Duration, unread int64) Reason {
	return Reason{CodeReplayStalled, Args{"idle": seconds(idle), "unread": unread}}
}

// Building is a version whose table is being built.
func Building() Reason { return Reason{Code: CodeBuilding} }

// RangeRead is a partition whose replay range is read.
func RangeRead() Reason { return Reason{Code: CodeRangeRead} }

// Replaying is a partition with records left in its replay range and newer ones behind it.
func Replaying(left, newer int64) Reason {
	return Reason{CodeReplaying, Args{"left": left, "newer": newer}}
}

// OpenTransaction is a partition whose newest records belong to a transaction that was not ended for heldFor.
func OpenTransaction(readable, held int64, heldFor time.Duration) Reason {
	return Reason{CodeOpenTransaction, Args{"readable": readable, "held": held, "held_for": seconds(heldFor)}}
}

// Stalled is a partition with records to read and no progress for idle.
func Stalled(idle time.Duration, behind Reason) Reason {
	return Reason{CodeStalled, Args{"idle": seconds(idle), "behind": behind}}
}

// AllRead is a partition without unread records.
func AllRead() Reason { return Reason{Code: CodeAllRead} }

// Behind is a partition with unread records, the oldest of them lag old.
func Behind(unread int64, lag time.Duration) Reason {
	return Reason{CodeBehind, Args{"unread": unread, "lag": seconds(lag)}}
}

// BehindAtLeast is a partition with unread records, the oldest of them lag old or older.
func BehindAtLeast(unread int64, lag time.Duration) Reason {
	return Reason{CodeBehindAtLeast, Args{"unread": unread, "lag": seconds(lag)}}
}

// NotConverging is a partition that had no more unread records a minute ago than it has now.
func NotConverging(behind Reason, before int64) Reason {
	return Reason{CodeNotConverging, Args{"behind": behind, "before": before}}
}

// LevelWithLive is a candidate's partition that is behind, as live is.
func LevelWithLive(cause Reason) Reason { return Reason{CodeLevelWithLive, Args{"cause": cause}} }

// NoPartitions is a version without partitions.
func NoPartitions() Reason { return Reason{Code: CodeNoPartitions} }

// Holding is a version within its limits that is ready when it stays there for readyIn.
func Holding(readyIn time.Duration) Reason {
	return Reason{CodeHolding, Args{"ready_in": seconds(readyIn)}}
}

// WithinLimits is a version whose partitions are all within the limits.
func WithinLimits(partitions int) Reason {
	return Reason{CodeWithinLimits, Args{"partitions": partitions}}
}

// DeadLetters is a version with more dead letters than on_error allows; limit is a share.
func DeadLetters(ref job.Ref, dead, records int64, share, limit float64) Reason {
	return Reason{CodeDeadLetters, Args{
		"job": string(ref.Job), "version": ref.Number.String(), "dead": dead, "records": records, "share": share,
		"limit": limit,
	}}
}

// MoreDeadLetters is a candidate with a larger share of dead letters than live.
func MoreDeadLetters(ref job.Ref, dead, records int64, share, live float64) Reason {
	return Reason{CodeMoreDeadLetters, Args{
		"job": string(ref.Job), "version": ref.Number.String(), "dead": dead, "records": records, "share": share,
		"live": live,
	}}
}

// NotDropped is a version whose table cannot be dropped yet.
func NotDropped(err error) Reason { return Reason{CodeNotDropped, Args{"cause": err.Error()}} }

// VersionEnded is a version that has ended.
func VersionEnded() Reason { return Reason{Code: CodeVersionEnded} }

// Adopted is a relation that was there before its job.
func Adopted() Reason { return Reason{Code: CodeAdopted} }

// NoSample is a version that was not sampled yet.
func NoSample() Reason { return Reason{Code: CodeNoSample} }

// SampleOld is a version whose last sample is older than limit.
func SampleOld(limit time.Duration) Reason {
	return Reason{CodeSampleOld, Args{"limit": seconds(limit)}}
}
