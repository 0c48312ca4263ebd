package status

import (
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/readiness"
)

// Job is a job as `status` shows it. Its JSON is documented; fields are only added. null means unknown.
type Job struct {
	Job         job.Name     `json:"job"`
	Team        string       `json:"team,omitempty"`
	View        string       `json:"view"`
	ViewName    job.ViewName `json:"-"` // View as a typed value
	Live        *string      `json:"live"`
	Versions    []Version    `json:"versions"`
	Deployments []Deployment `json:"deployments"`
	// Warnings are about the database: old transactions, dead rows. They are set only if a single job was requested.
	Warnings       []string        `json:"warnings"`
	WarningCodes   []reason.Code   `json:"warning_codes"` // the code of each of Warnings
	WarningReasons []reason.Reason `json:"-"`
}

// Version is one version of a job. Offsets and lags are sums over its partitions, null if one of them is unknown.
type Version struct {
	Version          string      `json:"version"`
	Hash             string      `json:"hash"`
	Phase            job.Phase   `json:"phase"`
	PhaseSince       time.Time   `json:"phase_since"`
	Paused           bool        `json:"paused"`
	Position         *int64      `json:"position"`
	End              *int64      `json:"end"`
	LagRecords       *int64      `json:"lag_records"`
	LagSeconds       *float64    `json:"lag_seconds"` // of the partition that is furthest behind
	RecordsPerSecond *float64    `json:"records_per_second"`
	ETASeconds       *float64    `json:"eta_seconds"`
	Verdict          job.Verdict `json:"verdict"`
	Reason           string      `json:"reason"`
	ReasonCode       reason.Code `json:"reason_code"`
	Records          int64       `json:"records"`
	DeadLetters      int64       `json:"dead_letters"`
	StandbyUntil     *time.Time  `json:"standby_until"`
	Pinned           bool        `json:"pinned"` // kept until it is unpinned
	StaleSince       *time.Time  `json:"stale_since"`
	RolledBackAt     *time.Time  `json:"rolled_back_at"`
	ExitCode         *int        `json:"exit_code"`
	Error            string      `json:"error"`
	ErrorCode        reason.Code `json:"error_code"`
	// needed records are no longer in the log, or the topic was recreated
	Incomplete        bool            `json:"incomplete"`
	GitRevision       string          `json:"git_revision"`
	CreatedBy         string          `json:"created_by"`
	CreatedAt         time.Time       `json:"created_at"`
	EndedAt           *time.Time      `json:"ended_at"`
	Partitions        []Partition     `json:"partitions"`
	Gaps              []Gap           `json:"gaps"`               // accepted gaps
	RetentionDeadline *time.Time      `json:"retention_deadline"` // when retention may start to delete unread records
	Warnings          []string        `json:"warnings"`
	WarningCodes      []reason.Code   `json:"warning_codes"` // the code of each of Warnings
	WarningReasons    []reason.Reason `json:"-"`
	Tables            []string        `json:"-"`       // names without schema, those of mode lambda too
	Checks            []Check         `json:"checks"`  // of its job file, with their latest answers
	Timings           *ledger.Timings `json:"timings"` // durations of its steps; only if a single job was requested
}

// Partition is one partition of a version.
type Partition struct {
	Topic            string      `json:"topic"`
	Partition        int32       `json:"partition"`
	Start            *int64      `json:"start"`
	Position         *int64      `json:"position"`
	LastStable       *int64      `json:"last_stable"`
	End              *int64      `json:"end"`
	LagRecords       *int64      `json:"lag_records"`
	HeldRecords      *int64      `json:"held_records"` // after the last stable offset, in open transactions
	LagSeconds       *float64    `json:"lag_seconds"`
	RecordTime       *time.Time  `json:"record_time"`
	RecordsPerSecond *float64    `json:"records_per_second"`
	ETASeconds       *float64    `json:"eta_seconds"`
	Verdict          job.Verdict `json:"verdict"`
	Reason           string      `json:"reason"`
	ReasonCode       reason.Code `json:"reason_code"`
	Since            time.Time   `json:"since"`
	SampledAt        time.Time   `json:"sampled_at"`
	// RetentionDeadline is when retention may start to delete unread records; null if it does not, or if it is unknown.
	RetentionDeadline *time.Time `json:"retention_deadline"`
}

// Deployment is a deployment that has not ended.
type Deployment struct {
	Deployment   int64               `json:"deployment"`
	Version      string              `json:"version"`
	State        job.DeploymentState `json:"state"`
	Message      string              `json:"message" db:"-"`
	MessageCode  reason.Code         `json:"message_code" db:"-"`
	Next         string              `json:"next"`
	ExitCode     *int                `json:"exit_code"`
	ObserveUntil *time.Time          `json:"observe_until"`
}

func (r versionRow) status(parts []observationRow, now time.Time) Version {
	v := Version{
		Version: job.Number(r.Number).String(), Hash: r.Hash, Phase: r.Phase, PhaseSince: r.PhaseSince,
		Paused:  r.PausedAt != nil,
		Records: r.Records, DeadLetters: r.DeadLetters,
		StandbyUntil: r.StandbyUntil, Pinned: r.PinnedAt != nil, StaleSince: r.StaleSince, RolledBackAt: r.RolledBackAt,
		ExitCode: r.ExitCode,
		Error:    r.Error.Text(), ErrorCode: r.Error.Code, Incomplete: r.Incomplete,
		GitRevision: r.GitRevision, CreatedBy: r.CreatedBy, CreatedAt: r.CreatedAt, EndedAt: r.EndedAt,
		Partitions: make([]Partition, 0, len(parts)),
		Tables:     r.tables(),
	}
	for _, p := range parts {
		v.Partitions = append(v.Partitions, p.status(now))
		v.Incomplete = v.Incomplete || p.Reason.Is(reason.CodeTopicRecreated) // the worker may not have found it yet
	}
	j := r.judgement(parts, now)
	v.Verdict, v.Reason, v.ReasonCode = j.Verdict, j.Reason.Text(), j.Reason.Code
	if r.EndedAt == nil && v.Verdict != job.Unknown {
		v.WarningReasons = r.Warnings
	}
	v.Warnings, v.WarningCodes = reason.Texts(v.WarningReasons), reason.CodesOf(v.WarningReasons)
	v.sum()
	return v
}

func (r versionRow) tables() []string {
	ref := job.Ref{Job: job.Name(r.Job), Number: job.Number(r.Number)}
	return job.Version{Ref: ref, Layout: job.Layout{Lambda: r.Lambda}}.Tables()
}

// judgement returns the stored verdict, unless it is stale or meaningless in the version's phase.
func (r versionRow) judgement(parts []observationRow, now time.Time) readiness.Judgement {
	unknown := func(why reason.Reason) readiness.Judgement {
		return readiness.Judgement{Verdict: job.Unknown, Reason: why}
	}
	switch {
	case r.EndedAt != nil:
		return unknown(reason.VersionEnded())
	case job.Number(r.Number) == 0:
		return unknown(reason.Adopted())
	case len(parts) == 0 && sampledIn(r.Phase) && r.Verdict != job.Starting && r.Verdict != job.Unhealthy:
		return unknown(reason.NoSample())
	case len(parts) > 0 && sampledIn(r.Phase) && stale(parts, now):
		return unknown(reason.SampleOld(readiness.StaleAfter))
	}
	return readiness.Judgement{Verdict: r.Verdict, Reason: r.Reason}
}

// sampledIn reports whether the controller of a version in this phase samples it.
func sampledIn(p job.Phase) bool { return p == job.Replaying || p == job.Building || p.Consumes() }

func stale(parts []observationRow, now time.Time) bool {
	newest := time.Time{}
	for _, p := range parts {
		if p.SampledAt.After(newest) {
			newest = p.SampledAt
		}
	}
	return now.Sub(newest) > readiness.StaleAfter
}

func (o observationRow) status(now time.Time) Partition {
	p := Partition{
		Topic: o.Topic, Partition: o.Partition, Start: o.LogStart, Position: o.Position, LastStable: o.LastStable,
		End:        o.EndOffset,
		LagRecords: o.LagRecords, LagSeconds: o.LagSeconds, RecordTime: o.RecordTime, RecordsPerSecond: o.ReadRate,
		Verdict: o.Verdict, Reason: o.Reason.Text(), ReasonCode: o.Reason.Code, Since: o.Since, SampledAt: o.SampledAt,
		RetentionDeadline: o.Deadline,
	}
	if o.LastStable != nil && o.EndOffset != nil {
		held := max(0, *o.EndOffset-*o.LastStable)
		p.HeldRecords = &held
	}
	if now.Sub(o.SampledAt) > readiness.StaleAfter {
		p.End, p.LastStable, p.LagRecords, p.HeldRecords, p.LagSeconds, p.RecordsPerSecond = nil, nil, nil, nil, nil, nil
		p.RetentionDeadline = nil
		old := reason.SampleOld(readiness.StaleAfter)
		p.Verdict, p.Reason, p.ReasonCode = job.Unknown, old.Text(), old.Code
	}
	p.ETASeconds = readiness.ETA(p.Verdict, p.LagRecords, p.RecordsPerSecond, o.ProduceRate)
	return p
}

// sum fills in the totals of a version from its partitions.
func (v *Version) sum() {
	if len(v.Partitions) == 0 {
		return
	}
	var position, end, lag total[int64]
	var rate total[float64]
	var seconds *float64
	known := true
	for _, p := range v.Partitions {
		position.add(p.Position)
		end.add(p.LastStable)
		lag.add(p.LagRecords)
		rate.add(p.RecordsPerSecond)
		known = known && p.LagSeconds != nil
		if at := p.RetentionDeadline; at != nil && (v.RetentionDeadline == nil || at.Before(*v.RetentionDeadline)) {
			v.RetentionDeadline = at
		}
		if p.LagSeconds != nil && (seconds == nil || *p.LagSeconds > *seconds) {
			seconds = p.LagSeconds
		}
	}
	v.Position, v.End, v.LagRecords, v.RecordsPerSecond = position.value(), end.value(), lag.value(), rate.value()
	if known {
		v.LagSeconds = seconds
	}
	v.ETASeconds = v.eta()
}

// eta returns the ETA of all the version's records at the sum of its rates, because its partitions share workers.
func (v *Version) eta() *float64 {
	if readiness.Endless(v.Verdict) {
		return nil
	}
	if v.LagRecords != nil && *v.LagRecords == 0 {
		zero := 0.0
		return &zero
	}
	var last *float64
	for _, p := range v.Partitions {
		if p.LagRecords != nil && *p.LagRecords == 0 {
			continue
		}
		if p.ETASeconds == nil {
			return v.sharedETA()
		}
		if last == nil || *p.ETASeconds > *last {
			last = p.ETASeconds
		}
	}
	if shared := v.sharedETA(); shared != nil && (v.Phase == job.Replaying || v.Phase == job.Building) {
		return shared
	}
	return last
}

func (v *Version) sharedETA() *float64 {
	if v.Phase != job.Replaying && v.Phase != job.Building {
		return nil
	}
	return readiness.ETA(v.Verdict, v.LagRecords, v.RecordsPerSecond, nil)
}

// total is a sum that is unknown as soon as one summand is.
type total[T int64 | float64] struct {
	sum     T
	unknown bool
}

func (t *total[T]) add(v *T) {
	if v == nil {
		t.unknown = true
		return
	}
	t.sum += *v
}

func (t *total[T]) value() *T {
	if t.unknown {
		return nil
	}
	return &t.sum
}
