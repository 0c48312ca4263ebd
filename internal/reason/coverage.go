package reason

import (
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

// Codes of what readers would lose by a flip.
const (
	CodeCoversLess    Code = "covers_less"
	CodeLossLater     Code = "loss_later"
	CodeLossAdopted   Code = "loss_adopted"
	CodeLossRecreated Code = "loss_recreated"
	CodeLossMissing   Code = "loss_missing"
	CodeLossGap       Code = "loss_gap"
	CodeSpan          Code = "span"
	CodeSpanBefore    Code = "span_before"
	CodeSpanUnknown   Code = "span_unknown"
	CodeRowsOlder     Code = "rows_older"
	CodeRowsOlderMore Code = "rows_older_more"
	CodeRowsKept      Code = "rows_kept"
	CodeRowsUnknown   Code = "rows_unknown"
	CodeStartUnknown  Code = "start_unknown"
	CodeNoTimeKey     Code = "no_time_key"
	CodeNoTimeLeft    Code = "no_time_left"
	CodeCountTooSlow  Code = "count_too_slow"
)

func coverageTexts() map[Code]string {
	return map[Code]string{
		CodeCoversLess: `{{text .candidate}} covers less history than {{text .live}}, which is live: readers would ` +
			`lose results` +
			"{{lines .losses}}\n" +
			`  rows of {{text .live_number}} older than what {{text .candidate_number}} covers: {{text .rows}}` + "\n" +
			`cures: set serve.keep in both versions, so that only the kept time must be covered; replay from where the ` +
			`history ` +
			`still is (an earlier replay.start, another topic, or an archive); or accept exactly this loss`,
		CodeLossLater: `{{text .at}}: {{text .live}} begins at offset {{text .live_from}}, {{text .candidate}} at ` +
			`{{text .from}} ` +
			`({{count .later}} offsets later), {{text .span}}`,
		CodeLossAdopted: `{{text .at}}: {{text .live}}, which was adopted, may hold results of the records before offset ` +
			`{{text .from}}, where {{text .candidate}} begins, {{text .span}}`,
		CodeLossRecreated: `{{text .at}}: {{text .live}} begins at offset {{text .live_from}} of a topic (id ` +
			`{{text .topic_id}}) that ` +
			`was deleted and created again; its records are gone`,
		CodeLossMissing: `{{text .at}}: {{text .live}} begins at offset {{text .live_from}}, {{text .candidate}} ` +
			`does not read it`,
		CodeLossGap: `{{text .at}}: {{text .candidate}} goes on behind an accepted gap, offsets {{text .live_from}} to ` +
			`{{text .from}} ({{count .lost}} offsets), which {{text .live}} has read`,
		CodeSpan:          `from {{text .from}} to {{text .to}} ({{duration .takes}})`,
		CodeSpanBefore:    `everything before {{text .to}}`,
		CodeSpanUnknown:   `the time is unknown`,
		CodeRowsOlder:     `{{count .rows}} before {{text .before}}`,
		CodeRowsOlderMore: `more than {{count .rows}} before {{text .before}}`,
		CodeRowsKept: `up to all {{count .rows}} that serve.keep keeps: it goes by {{.column}}, which may be later than ` +
			`the times of the records`,
		CodeRowsUnknown:  `unknown{{if .cause}}: {{text .cause}}{{end}}`,
		CodeStartUnknown: `the time at which a partition begins is unknown`,
		CodeNoTimeKey:    `no key is a time`,
		CodeNoTimeLeft:   `there was no time left to count them`,
		CodeCountTooSlow: `counting them takes longer than {{duration .limit}}`,
	}
}

// CoversLess is a candidate that covers less history than live.
func CoversLess(live, candidate job.Ref, losses []Reason, rows Reason) Reason {
	return Reason{CodeCoversLess, Args{
		"live": live.String(), "candidate": candidate.String(), "live_number": live.Number.String(),
		"candidate_number": candidate.Number.String(), "losses": losses, "rows": rows,
	}}
}

// LossAt is where live and the candidate begin on a partition.
type LossAt struct {
	Partition       job.Partition
	Live, Candidate job.Number
	LiveFrom, From  int64
}

func (l LossAt) args() Args {
	return Args{
		"at": l.Partition.String(), "topic_id": l.Partition.TopicID.String(), "live": l.Live.String(),
		"candidate": l.Candidate.String(), "live_from": l.LiveFrom,
	}
}

// LossLater is a candidate that begins at a later offset than live.
func LossLater(at LossAt, span Reason) Reason {
	a := at.args()
	a["from"], a["later"], a["span"] = at.From, at.From-at.LiveFrom, span
	return Reason{CodeLossLater, a}
}

// LossAdopted is a candidate that does not begin at offset 0, beside an adopted relation.
func LossAdopted(at LossAt, span Reason) Reason {
	a := at.args()
	a["from"], a["span"] = at.From, span
	return Reason{CodeLossAdopted, a}
}

// LossRecreated is a partition of a topic that was created again since live read it.
func LossRecreated(at LossAt) Reason { return Reason{CodeLossRecreated, at.args()} }

// LossMissing is a partition that the candidate does not read.
func LossMissing(at LossAt) Reason { return Reason{CodeLossMissing, at.args()} }

// LossGap is a gap that was accepted for the candidate, from LiveFrom to From, whose offsets live has read.
func LossGap(at LossAt) Reason {
	a := at.args()
	a["from"], a["lost"] = at.From, at.From-at.LiveFrom
	return Reason{CodeLossGap, a}
}

// Span is the time that is lost.
func Span(from, to time.Time) Reason {
	return Reason{CodeSpan, Args{"from": Time(from), "to": Time(to), "takes": seconds(max(0, to.Sub(from)))}}
}

// SpanBefore is a lost time whose beginning is unknown.
func SpanBefore(to time.Time) Reason { return Reason{CodeSpanBefore, Args{"to": Time(to)}} }

// SpanUnknown is a lost time that is unknown.
func SpanUnknown() Reason { return Reason{Code: CodeSpanUnknown} }

// RowsOlder is the number of rows before a time.
func RowsOlder(rows int64, before time.Time) Reason {
	return Reason{CodeRowsOlder, Args{"rows": rows, "before": Time(before)}}
}

// RowsOlderMore is more rows before a time than are counted.
func RowsOlderMore(rows int64, before time.Time) Reason {
	return Reason{CodeRowsOlderMore, Args{"rows": rows, "before": Time(before)}}
}

// RowsKept is the number of rows that are kept by a column that need not be the time of their records.
func RowsKept(rows int64, column string) Reason {
	return Reason{CodeRowsKept, Args{"rows": rows, "column": column}}
}

// RowsUnknown is a number of rows that is unknown; cause may be zero.
func RowsUnknown(cause Reason) Reason {
	if cause.IsZero() {
		return Reason{Code: CodeRowsUnknown}
	}
	return Reason{CodeRowsUnknown, Args{"cause": cause}}
}

// StartUnknown is a partition whose first record has no known time.
func StartUnknown() Reason { return Reason{Code: CodeStartUnknown} }

// NoTimeKey is a version without a time among its keys.
func NoTimeKey() Reason { return Reason{Code: CodeNoTimeKey} }

// NoTimeLeft is a count for which the command had no time left.
func NoTimeLeft() Reason { return Reason{Code: CodeNoTimeLeft} }

// CountTooSlow is a count that took longer than limit.
func CountTooSlow(limit time.Duration) Reason {
	return Reason{CodeCountTooSlow, Args{"limit": seconds(limit)}}
}
