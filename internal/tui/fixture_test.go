package tui

import (
	"fmt"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/status"
)

// noon is when the tests look.
func noon() time.Time { return time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC) }

func ptr[T any](v T) *T { return &v }

// part is a partition of a topic that began at offset 0.
func part(topic string, id int32, position, end int64, lag time.Duration, rate float64, verdict job.Verdict, reason string) status.Partition {
	p := status.Partition{
		Topic: topic, Partition: id, Start: ptr(int64(0)), Position: &position, LastStable: &end, End: &end, LagRecords: ptr(end - position),
		HeldRecords: ptr(int64(0)), LagSeconds: ptr(lag.Seconds()), RecordsPerSecond: &rate,
		Verdict: verdict, Reason: reason, Since: noon().Add(-time.Minute), SampledAt: noon(),
	}
	if rate > 0 {
		p.ETASeconds = ptr(float64(end-position) / rate)
	}
	return p
}

// version sums its partitions up.
func version(name string, phase job.Phase, verdict job.Verdict, reason string, parts ...status.Partition) status.Version {
	v := status.Version{
		Version: name, Hash: "04d1e88c90aa", Phase: phase, PhaseSince: noon().Add(-42 * time.Second), Verdict: verdict, Reason: reason,
		GitRevision: "77aa01bb0f31", CreatedBy: "ana@laptop", CreatedAt: noon().Add(-5 * time.Minute), Partitions: parts,
	}
	if len(parts) == 0 {
		return v
	}
	var position, end, lag int64
	var rate, behind, eta float64
	for _, p := range parts {
		position, end, lag = position+*p.Position, end+*p.End, lag+*p.LagRecords
		rate, behind = rate+*p.RecordsPerSecond, max(behind, *p.LagSeconds)
		if p.ETASeconds != nil {
			eta = max(eta, *p.ETASeconds)
		}
	}
	v.Position, v.End, v.LagRecords, v.LagSeconds, v.RecordsPerSecond, v.Records = &position, &end, &lag, &behind, &rate, position
	if eta > 0 || lag == 0 {
		v.ETASeconds = &eta
	}
	return v
}

func livePart(id int32, end int64) status.Partition {
	return part("pageviews", id, end, end, 0, 110, job.Ready, "all records are read")
}

// liveVersion is v1, which readers see.
func liveVersion(partitions int32) status.Version {
	var parts []status.Partition
	for i := range partitions {
		parts = append(parts, livePart(i, 1_168_444+int64(i)*3))
	}
	v := version("v1", job.Live, job.Ready, fmt.Sprintf("%d partitions within limits", partitions), parts...)
	v.Hash, v.GitRevision, v.CreatedBy = "9f31c02ab771", "4be1f00a21c9", "ci@runner-7"
	v.PhaseSince, v.CreatedAt = noon().Add(-76*time.Hour), noon().Add(-80*time.Hour)
	return v
}

// catchingUp is v2, which follows the topic and is not there yet.
func catchingUpVersion(partitions int32) status.Version {
	var parts []status.Partition
	for i := range partitions {
		end := 1_168_444 + int64(i)*3
		behind := int64(i) * int64(i) * 3_100
		switch {
		case i == 3:
			parts = append(parts, part("pageviews", i, end-402_113, end, 250*time.Second, 900, job.NotConverging, "402,113 records, 4m10s behind; it was 401,870 a minute ago"))
		case behind == 0:
			parts = append(parts, part("pageviews", i, end, end, 0, 110, job.Ready, "all records are read"))
		default:
			parts = append(parts, part("pageviews", i, end-behind, end, time.Duration(i)*9*time.Second, 19_000, job.Lagging, fmt.Sprintf("%d records, %ds behind", behind, 9*i)))
		}
	}
	v := version("v2", job.CatchingUp, job.NotConverging, "402,113 records, 4m10s behind; it was 401,870 a minute ago", parts...)
	v.DeadLetters, v.ETASeconds = 12, nil
	return v
}

func replayingVersion(partitions int32) status.Version {
	var parts []status.Partition
	for i := range partitions {
		end := 1_168_444 + int64(i)*3
		done := end * int64(i+1) / int64(partitions+1)
		parts = append(parts, part("pageviews", i, done, end, 0, 21_000, job.ReplayingRanges, fmt.Sprintf("%d records left in the replay range, then 120 newer", end-done)))
	}
	return version("v2", job.Replaying, job.ReplayingRanges, "", parts...)
}

func pageviews(versions ...status.Version) status.Job {
	s := status.Job{Job: "pageviews", Team: "growth", View: "public.pageviews_hourly", Versions: versions}
	for i := range versions {
		if versions[i].Phase == job.Live {
			s.Live = &versions[i].Version
		}
	}
	return s
}

func facts() map[string]Facts {
	at := noon().Add(-20 * time.Second)
	return map[string]Facts{"v2": {
		Ready: job.ReadySettings{MaxLagTime: 5 * time.Second, StableFor: 10 * time.Second}, Segments: 24, Done: 17,
		Deadline: ptr(noon().Add(48 * time.Minute)),
		Checks: []Check{
			{Name: "not_empty", When: "before", Outcome: "pass", At: &at},
			{Name: "close_to_live", When: "before", Outcome: "fail", Detail: "301 of 10,000 rows differ (3.01%, allowed 1%)", At: &at},
			{Name: "no_nulls", When: "both"},
		},
	}}
}

func detail(versions ...status.Version) Detail {
	s := pageviews(versions...)
	s.Deployments = []status.Deployment{{Deployment: 7, Version: "v2", State: job.RollingOut}}
	return Detail{
		Status: s, Facts: facts(), Agents: 2,
		Deployment: &ledger.Deployment{ID: 7, Job: "pageviews", Number: 2, State: job.RollingOut, Phase: job.CatchingUp, CreatedAt: noon().Add(-5 * time.Minute)},
	}
}

// fleet is several jobs, each in another condition.
func fleet() Overview {
	named := func(name job.Name, team, view string, s status.Job) status.Job {
		s.Job, s.Team, s.View = name, team, view
		return s
	}
	standbyVersion := liveVersion(2)
	standbyVersion.Version, standbyVersion.Phase, standbyVersion.StandbyUntil = "v4", job.Standby, ptr(noon().Add(3*time.Hour))
	five := liveVersion(2)
	five.Version = "v5"
	queued := version("v3", job.Replaying, job.Starting, "2 of 2 replay slots in use (agent.replays)")
	queued.ReasonCode = reason.CodeQueued
	paused := replayingVersion(4)
	paused.Paused, paused.Verdict, paused.Reason, paused.ReasonCode = true, job.Stalled, "paused", reason.CodePaused
	gap := liveVersion(3)
	gap.Verdict, gap.Reason = job.Unhealthy, "gap flights/2 [1200,4400): the log no longer holds these offsets"
	unknown := liveVersion(1)
	unknown.Verdict, unknown.Reason = job.Unknown, "the last sample is older than 5s: no agent is running this version"
	unknown.LagRecords, unknown.LagSeconds, unknown.RecordsPerSecond, unknown.ETASeconds, unknown.End = nil, nil, nil, nil, nil
	unknown.Partitions[0].LagRecords, unknown.Partitions[0].End = nil, nil
	return Overview{Agents: 3, Jobs: []status.Job{
		named("clicks", "growth", "public.clicks", pageviews(queued, liveVersion(2))),
		named("flights", "ops", "public.flights_by_route", pageviews(gap)),
		named("orders", "", "shop.orders_daily", pageviews(five, standbyVersion)),
		named("pageviews", "growth", "public.pageviews_hourly", pageviews(catchingUpVersion(12), liveVersion(12))),
		named("sessions", "データ基盤 🚀", "public.sessions", pageviews(paused, liveVersion(4))),
		named("signups_by_country_and_campaign", "growth", "public.signups", pageviews(unknown)),
	}}
}

func events() []Event {
	at := func(ago time.Duration) time.Time { return noon().Add(-ago) }
	return []Event{
		{ID: 9, At: at(12 * time.Second), Version: "v2", Kind: "checks_failed", Message: "check \"close_to_live\": fail: 301 of 10,000 rows differ (3.01%, allowed 1%)"},
		{ID: 8, At: at(42 * time.Second), Version: "v2", Kind: "phase", Message: "building → catching_up: built"},
		{ID: 7, At: at(50 * time.Second), Version: "v2", Kind: "built.fill", Message: "fill took 6.1s"},
		{ID: 6, At: at(2 * time.Minute), Version: "v2", Kind: "resume", Message: "resumed", By: "ana@laptop"},
		{ID: 5, At: at(3 * time.Minute), Version: "v2", Kind: "pause", Message: "paused", By: "ana@laptop"},
		{ID: 4, At: at(5 * time.Minute), Version: "v2", Kind: "deploy", Message: "staged as 04d1e88c90aa", By: "ana@laptop"},
		{ID: 3, At: at(76 * time.Hour), Version: "v1", Kind: "promoted", Message: "public.pageviews_hourly reads v1", By: "ci@runner-7"},
		{ID: 2, At: at(79 * time.Hour), Version: "v1", Kind: "phase", Message: "staged → replaying: frozen"},
		{ID: 1, At: at(80 * time.Hour), Version: "v1", Kind: "deploy", Message: "staged as 9f31c02ab771", By: "ci@runner-7"},
	}
}

// warned gives a version warnings, as status reads them.
func warned(v *status.Version, reasons ...reason.Reason) {
	v.WarningReasons, v.Warnings, v.WarningCodes = reasons, reason.Texts(reasons), reason.CodesOf(reasons)
}
