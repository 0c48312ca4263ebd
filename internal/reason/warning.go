package reason

import (
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

// Codes of warnings beside a verdict.
const (
	CodeRetention        Code = "retention"
	CodeRetentionUnknown Code = "retention_unknown"
	CodeRetentionOver    Code = "retention_over"
	CodeFutureTimestamps Code = "future_timestamps"
	CodeTombstonesLost   Code = "tombstones_lost"
	CodeTombstonesAtRisk Code = "tombstones_at_risk"
	CodeReplaySlowed     Code = "replay_slowed"
	CodeBrokerThrottled  Code = "broker_throttled"
	CodeKeysMoved        Code = "keys_moved"
	CodeKeysMayMove      Code = "keys_may_move"
	CodeEmptyColumns     Code = "empty_columns"
	CodeNothingToReplay  Code = "nothing_to_replay"
	CodeViewAggregates   Code = "view_aggregates"
	CodeOldTransaction   Code = "old_transaction"
	CodeDeadRows         Code = "dead_rows"
)

func warningTexts() map[Code]string {
	const expires = `retention deletes unread records of {{text .at}} {{if .left}}from {{text .deadline}} on (in ` +
		`{{duration .left}}){{else}}now{{end}}`
	return map[Code]string{
		CodeRetention: expires + `, before they are read (in about {{duration .eta}}): raise retention.ms, ` +
			`replay.max_rate or the number of workers`,
		CodeRetentionUnknown: expires + `; when they will be read is unknown`,
		CodeRetentionOver:    `unread records are read before retention deletes them`,
		CodeFutureTimestamps: `a record of {{text .at}} has the timestamp {{text .time}}, which is in the future: ` +
			`a producer's clock or its unit of time is wrong{{if .more}}; so do records of ` +
			`{{plural .more "more partition" "more partitions"}}{{end}}`,
		CodeTombstonesLost: `the replay has taken {{duration .took}} and topic {{text .topic}} keeps tombstones for ` +
			`{{duration .keeps}} ` +
			`(delete.retention.ms): keys deleted since may stay in the table; deploy again with a faster replay or a ` +
			`longer delete.retention.ms`,
		CodeTombstonesAtRisk: `the replay will take about {{duration .takes}} and topic {{text .topic}} keeps ` +
			`tombstones for {{duration .keeps}} ` +
			`(delete.retention.ms): deletes may be missed`,
		CodeOldTransaction: `{{text .session}}: rows that agents have replaced since then cannot be removed, and a ` +
			`flip may wait for it`,
		CodeDeadRows: `table {{text .table}} has {{count .dead}} dead rows and {{count .live}} live ones: autovacuum ` +
			`is off, or an old ` +
			`transaction keeps it from them; once that has ended: VACUUM {{text .table}}`,
		CodeReplaySlowed: `the replay is slowed down on agent {{text .agent}}: {{text .cause}}`,
		CodeBrokerThrottled: `throttled by the broker: agent {{text .agent}} waits {{percent .share}} of its time for ` +
			`a quota`,
		CodeKeysMoved: `{{if .estimate}}about {{end}}{{plural .keys "key has" "keys have"}} records in more than one ` +
			`partition` +
			`{{if .by}}; the {{text .by}} decides which of them is the newest: let producers choose the partition by the ` +
			`key{{end}}`,
		CodeKeysMayMove: `partitions were added: keys may have moved between partitions; the newest record of a key is ` +
			`decided by its ` +
			`order or time, not by its partition`,
		CodeEmptyColumns: `NULL in every row, while {{text .live}}, which is live, has values: {{list .columns}}; was ` +
			`a field renamed?`,
		CodeNothingToReplay: `replay.start ({{text .start}}) leaves nothing to replay of {{list .topics}}, ` +
			`with {{plural .offsets "offset" "offsets"}} in the log: only what arrives from now on is read; to ` +
			`replay all of it, set replay.start: earliest`,
		CodeViewAggregates: `of mode lambda {{text .view}} merges its layers when it is read: conditions on its keys ` +
			`still reach the indexes, but a join to it by key aggregates all of it first; write such a join as ` +
			`LATERAL (SELECT * FROM {{text .view}} v WHERE v.k = t.k OFFSET 0), or k = ANY (…)`,
	}
}

// ViewAggregates is a view that becomes one of mode lambda, which aggregates.
func ViewAggregates(view job.ViewName) Reason {
	return Reason{CodeViewAggregates, Args{"view": view.String()}}
}

// Retention is unread records that retention deletes from deadline on, in left, before they are read in eta.
func Retention(at string, deadline time.Time, left, eta time.Duration) Reason {
	args := expiry(at, deadline, left)
	args["eta"] = seconds(eta)
	return Reason{CodeRetention, args}
}

// RetentionUnknown is Retention when it is not known how long reading takes.
func RetentionUnknown(at string, deadline time.Time, left time.Duration) Reason {
	return Reason{CodeRetentionUnknown, expiry(at, deadline, left)}
}

func expiry(at string, deadline time.Time, left time.Duration) Args {
	return Args{"at": at, "deadline": Time(deadline), "left": max(0, seconds(left))}
}

// RetentionOver is the end of Retention.
func RetentionOver() Reason { return Reason{Code: CodeRetentionOver} }

// FutureTimestamps is a record with a timestamp in the future, and how many more partitions have such records.
func FutureTimestamps(p job.Partition, at time.Time, more int) Reason {
	return Reason{CodeFutureTimestamps, Args{"at": p.String(), "time": Time(at), "more": more}}
}

// TombstonesLost is a replay that has taken longer than its topic keeps tombstones.
func TombstonesLost(topic string, took, keeps time.Duration) Reason {
	return Reason{CodeTombstonesLost, Args{"topic": topic, "took": seconds(took), "keeps": seconds(keeps)}}
}

// TombstonesAtRisk is a replay that will take longer than its topic keeps tombstones.
func TombstonesAtRisk(topic string, takes, keeps time.Duration) Reason {
	return Reason{CodeTombstonesAtRisk, Args{"topic": topic, "takes": seconds(takes), "keeps": seconds(keeps)}}
}

// ReplaySlowed is a replay that an agent slows down to protect PostgreSQL.
func ReplaySlowed(agent, cause string) Reason {
	return Reason{CodeReplaySlowed, Args{"agent": agent, "cause": cause}}
}

// BrokerThrottled is an agent that waits that share of its time for a quota of the brokers.
func BrokerThrottled(agent string, share float64) Reason {
	return Reason{CodeBrokerThrottled, Args{"agent": agent, "share": share}}
}

// KeysMoved is keys with records in more than one partition; by is what decides which record is the newest.
func KeysMoved(keys int64, exact bool, by string) Reason {
	return Reason{CodeKeysMoved, Args{"keys": keys, "estimate": !exact, "by": by}}
}

// KeysMayMove is partitions that were added to a topic whose keys decide the partition.
func KeysMayMove() Reason { return Reason{Code: CodeKeysMayMove} }

// OldTransaction is a session whose transaction has been open for long.
func OldTransaction(pid int, session string) Reason {
	return Reason{CodeOldTransaction, Args{"pid": pid, "session": session}}
}

// DeadRows is a table with more dead rows than live ones.
func DeadRows(table string, dead, live int64) Reason {
	return Reason{CodeDeadRows, Args{"table": table, "dead": dead, "live": live}}
}

// EmptyColumns is columns that hold values in live and NULL in every row of the candidate.
func EmptyColumns(live job.Number, columns []string) Reason {
	return Reason{CodeEmptyColumns, Args{"live": live.String(), "columns": columns}}
}

// NothingToReplay is topics with records, so many offsets in all, of which a start point leaves nothing to replay.
func NothingToReplay(start string, topics []string, offsets int64) Reason {
	return Reason{CodeNothingToReplay, Args{"start": start, "topics": topics, "offsets": offsets}}
}
