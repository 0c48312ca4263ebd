package reprocess

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/kappactl/kappactl/internal/job"
)

// Status is a job as `status` shows it. Its JSON is documented and only ever grows; null means unknown.
type Status struct {
	Job         job.Name           `json:"job"`
	Team        string             `json:"team,omitempty"`
	View        string             `json:"view"`
	ViewName    job.ViewName       `json:"-"` // View in its parts
	Live        *string            `json:"live"`
	Versions    []VersionStatus    `json:"versions"`
	Deployments []DeploymentStatus `json:"deployments"`
	// Warnings are about the database: old transactions, dead rows. Only where one job was asked for.
	Warnings []string `json:"warnings"`
}

// VersionStatus is one version. Offsets and lags are sums over its partitions, null when one of them is unknown.
type VersionStatus struct {
	Version           string            `json:"version"`
	Hash              string            `json:"hash"`
	Phase             job.Phase         `json:"phase"`
	PhaseSince        time.Time         `json:"phase_since"`
	Paused            bool              `json:"paused"`
	Position          *int64            `json:"position"`
	End               *int64            `json:"end"`
	LagRecords        *int64            `json:"lag_records"`
	LagSeconds        *float64          `json:"lag_seconds"` // of the partition that is furthest behind
	RecordsPerSecond  *float64          `json:"records_per_second"`
	ETASeconds        *float64          `json:"eta_seconds"`
	Verdict           job.Verdict       `json:"verdict"`
	Reason            string            `json:"reason"`
	Records           int64             `json:"records"`
	DeadLetters       int64             `json:"dead_letters"`
	StandbyUntil      *time.Time        `json:"standby_until"`
	Pinned            bool              `json:"pinned"` // kept until it is unpinned
	StaleSince        *time.Time        `json:"stale_since"`
	RolledBackAt      *time.Time        `json:"rolled_back_at"`
	ExitCode          *int              `json:"exit_code"`
	Error             string            `json:"error"`
	Incomplete        bool              `json:"incomplete"` // the log no longer holds records that it needs, or the topic was made again
	GitRevision       string            `json:"git_revision"`
	CreatedBy         string            `json:"created_by"`
	CreatedAt         time.Time         `json:"created_at"`
	EndedAt           *time.Time        `json:"ended_at"`
	Partitions        []PartitionStatus `json:"partitions"`
	RetentionDeadline *time.Time        `json:"retention_deadline"` // when retention may begin to delete what is unread
	Warnings          []string          `json:"warnings"`
	Checks            []CheckStatus     `json:"checks"`  // of its job file, with what each said last
	Timings           *Timings          `json:"timings"` // where its time went; only where one job was asked for
}

// PartitionStatus is one partition of a version.
type PartitionStatus struct {
	Topic            string      `json:"topic"`
	Partition        int32       `json:"partition"`
	Start            *int64      `json:"start"`
	Position         *int64      `json:"position"`
	LastStable       *int64      `json:"last_stable"`
	End              *int64      `json:"end"`
	LagRecords       *int64      `json:"lag_records"`
	HeldRecords      *int64      `json:"held_records"` // behind an open transaction
	LagSeconds       *float64    `json:"lag_seconds"`
	RecordTime       *time.Time  `json:"record_time"`
	RecordsPerSecond *float64    `json:"records_per_second"`
	ETASeconds       *float64    `json:"eta_seconds"`
	Verdict          job.Verdict `json:"verdict"`
	Reason           string      `json:"reason"`
	Since            time.Time   `json:"since"`
	SampledAt        time.Time   `json:"sampled_at"`
	// RetentionDeadline is when retention may begin to delete what is unread; null when nothing is, or unknown.
	RetentionDeadline *time.Time `json:"retention_deadline"`
}

// DeploymentStatus is a deployment that has not ended.
type DeploymentStatus struct {
	Deployment   int64               `json:"deployment"`
	Version      string              `json:"version"`
	State        job.DeploymentState `json:"state"`
	Message      string              `json:"message"`
	Next         string              `json:"next"`
	ExitCode     *int                `json:"exit_code"`
	ObserveUntil *time.Time          `json:"observe_until"`
}

// staleAfter is how old a sample may be before its numbers are unknown.
const staleAfter = 5 * time.Second

func (r versionRow) status(parts []observationRow, now time.Time) VersionStatus {
	v := VersionStatus{
		Version: job.Number(r.Number).String(), Hash: r.Hash, Phase: r.Phase, PhaseSince: r.PhaseSince, Paused: r.PausedAt != nil,
		Verdict: r.Verdict, Reason: r.Reason, Records: r.Records, DeadLetters: r.DeadLetters,
		StandbyUntil: r.StandbyUntil, Pinned: r.PinnedAt != nil, StaleSince: r.StaleSince, RolledBackAt: r.RolledBackAt, ExitCode: r.ExitCode,
		Error: r.Error, Incomplete: r.Incomplete,
		GitRevision: r.GitRevision, CreatedBy: r.CreatedBy, CreatedAt: r.CreatedAt, EndedAt: r.EndedAt,
		Partitions: make([]PartitionStatus, 0, len(parts)),
	}
	for _, p := range parts {
		v.Partitions = append(v.Partitions, p.status(now))
		v.Incomplete = v.Incomplete || strings.HasPrefix(p.Reason, recreatedWords) // before, or without, the worker's own finding
	}
	switch {
	case r.EndedAt != nil:
		v.Verdict, v.Reason = job.Unknown, "the version has ended"
	case job.Number(r.Number) == 0:
		v.Verdict, v.Reason = job.Unknown, adoptedReason
	case len(parts) == 0 && sampledIn(r.Phase) && v.Verdict != job.Starting && v.Verdict != job.Unhealthy:
		v.Verdict, v.Reason = job.Unknown, "no sample yet"
	case len(parts) > 0 && sampledIn(r.Phase) && stale(parts, now):
		v.Verdict, v.Reason = job.Unknown, "the last sample is older than 5s: no agent looks after this version"
	}
	v.Warnings = r.warnings(v.Verdict)
	v.sum()
	return v
}

// warnings are what was noted beside the verdict, as long as the version is looked after.
func (r versionRow) warnings(v job.Verdict) []string {
	out := []string{}
	if r.EndedAt != nil || v == job.Unknown || json.Unmarshal([]byte(r.Warnings), &out) != nil {
		return []string{}
	}
	return out
}

// sampledIn says that the controller of a version in this phase samples it.
func sampledIn(p job.Phase) bool { return p == job.Replaying || p == job.Building || p.Consumes() }

func stale(parts []observationRow, now time.Time) bool {
	newest := time.Time{}
	for _, p := range parts {
		if p.SampledAt.After(newest) {
			newest = p.SampledAt
		}
	}
	return now.Sub(newest) > staleAfter
}

func (o observationRow) status(now time.Time) PartitionStatus {
	p := PartitionStatus{
		Topic: o.Topic, Partition: o.Partition, Start: o.LogStart, Position: o.Position, LastStable: o.LastStable, End: o.EndOffset,
		LagRecords: o.LagRecords, LagSeconds: o.LagSeconds, RecordTime: o.RecordTime, RecordsPerSecond: o.ReadRate,
		Verdict: o.Verdict, Reason: o.Reason, Since: o.Since, SampledAt: o.SampledAt, RetentionDeadline: o.Deadline,
	}
	if o.LastStable != nil && o.EndOffset != nil {
		held := max(0, *o.EndOffset-*o.LastStable)
		p.HeldRecords = &held
	}
	if now.Sub(o.SampledAt) > staleAfter {
		p.End, p.LastStable, p.LagRecords, p.HeldRecords, p.LagSeconds, p.RecordsPerSecond = nil, nil, nil, nil, nil, nil
		p.RetentionDeadline = nil
		p.Verdict, p.Reason = job.Unknown, "the last sample is older than 5s"
	}
	p.ETASeconds = eta(p.LagRecords, p.RecordsPerSecond, o.ProduceRate)
	return p
}

// sum fills the totals of a version from its partitions.
func (v *VersionStatus) sum() {
	if len(v.Partitions) == 0 {
		return
	}
	var position, end, lag total[int64]
	var rate total[float64]
	var seconds *float64
	known := true
	for _, p := range v.Partitions {
		position.add(p.Position)
		end.add(p.End)
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

// eta of a version is that of all its records at all its rates: workers are shared by its partitions.
func (v *VersionStatus) eta() *float64 {
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

func (v *VersionStatus) sharedETA() *float64 {
	if v.Phase != job.Replaying && v.Phase != job.Building {
		return nil
	}
	return eta(v.LagRecords, v.RecordsPerSecond, nil)
}

// eta is unread records over the rate at which they become fewer, in seconds; nil when they do not or it is unknown.
func eta(unread *int64, read, produced *float64) *float64 {
	if unread == nil {
		return nil
	}
	if *unread == 0 {
		zero := 0.0
		return &zero
	}
	if read == nil {
		return nil
	}
	net := *read
	if produced != nil {
		net -= *produced
	}
	if net <= 0 {
		return nil
	}
	seconds := float64(*unread) / net
	return &seconds
}

// total is a sum that is unknown as soon as one part is.
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
