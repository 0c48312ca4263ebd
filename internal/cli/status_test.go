package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess"
)

func twoVersions() []reprocess.Status {
	return []reprocess.Status{{
		Job: "pageviews", View: "public.pageviews_hourly", Live: ptr("v1"),
		Versions: []reprocess.VersionStatus{
			{
				Version: "v2", Phase: job.CatchingUp, LagRecords: ptr(int64(1500)), LagSeconds: ptr(7.0), RecordsPerSecond: ptr(12000.0),
				ETASeconds: ptr(0.2), Verdict: job.Lagging, Reason: "lag 7s on pageviews/0",
				Partitions: []reprocess.PartitionStatus{{Topic: "pageviews", Position: ptr(int64(100)), End: ptr(int64(1600)), Verdict: job.Lagging}},
			},
			{Version: "v1", Phase: job.Live, Verdict: job.Unknown, Reason: "no sample yet", DeadLetters: 3},
		},
	}}
}

func TestStatusIsTabSeparatedInAPipe(t *testing.T) {
	var b strings.Builder
	if err := printStatuses(&b, render.Style{}, twoVersions(), false); err != nil {
		t.Fatal(err)
	}
	want := "job\tversion\tphase\tlag_records\tlag_time\trate\teta\tdead_letters\tverdict\treason\n" +
		"pageviews\tv2\tcatching_up\t1500\t7s\t12k/s\t200ms\t0\tlagging\tlag 7s on pageviews/0\n" +
		"pageviews\tv1\tlive\t-\t-\t-\t-\t3\tunknown\tno sample yet\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestStatusOfOneJobShowsItsPartitionsToPeople(t *testing.T) {
	var b strings.Builder
	if err := printStatuses(&b, render.Style{People: true}, twoVersions(), true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"pageviews  v2       catching_up        1,500", "PARTITION", "pageviews/0"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestStatusShowsWhenARollbackWindowEndsAndWhatIsWrongWithTheDatabase(t *testing.T) {
	until := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	s := reprocess.Status{
		Deployments: []reprocess.DeploymentStatus{{Deployment: 4, Version: "v2", State: job.Observing, ObserveUntil: &until}},
		Warnings:    []string{"table public.hits__v2 has 20000 dead rows"},
	}
	text := deploymentLines(s) + warningLines(render.Style{}, s)
	for _, want := range []string{"deployment 4 of v2: observing, rollback window until 2026-03-04T05:06:07Z\n", "warning: table public.hits__v2 has 20000 dead rows\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	v := reprocess.VersionStatus{Phase: job.Standby, StandbyUntil: &until, Reason: "2 partitions within the limits"}
	if got, want := reasonOf(v), "kept until 2026-03-04T05:06:07Z; 2 partitions within the limits"; got != want {
		t.Errorf("reason %q, want %q", got, want)
	}
	v.Pinned, v.StaleSince = true, &until
	if got, want := reasonOf(v), "pinned; stale since 2026-03-04T05:06:07Z; 2 partitions within the limits"; got != want {
		t.Errorf("reason %q, want %q", got, want)
	}
}

func TestReadinessIsNeverGivenForUnknown(t *testing.T) {
	s := reprocess.Status{Deployments: []reprocess.DeploymentStatus{{Version: "v9", ExitCode: ptr(7)}}}
	for name, c := range map[string]struct {
		v    *reprocess.VersionStatus
		want job.ExitCode
	}{
		"no version":       {nil, 3},
		"ready":            {&reprocess.VersionStatus{Phase: job.Live, Verdict: job.Ready}, 0},
		"ready but paused": {&reprocess.VersionStatus{Phase: job.CaughtUp, Verdict: job.Ready, Paused: true}, 3},
		"unknown":          {&reprocess.VersionStatus{Phase: job.Live, Verdict: job.Unknown}, 3},
		"lagging":          {&reprocess.VersionStatus{Phase: job.CatchingUp, Verdict: job.Lagging}, 3},
		"unhealthy":        {&reprocess.VersionStatus{Phase: job.Live, Verdict: job.Unhealthy}, 8},
		"gap":              {&reprocess.VersionStatus{Version: "v9", Phase: job.CatchingUp, Verdict: job.Unhealthy}, 7},
		"failed by checks": {&reprocess.VersionStatus{Phase: job.Failed, Verdict: job.Unknown, ExitCode: ptr(5)}, 5},
		"retired":          {&reprocess.VersionStatus{Phase: job.Retired, Verdict: job.Unknown}, 8},
	} {
		if got := readiness(s, c.v); got != c.want {
			t.Errorf("%s: exit %d, want %d", name, got, c.want)
		}
	}
}

func TestAQuestionAboutAJobIsAboutItsNewestCandidate(t *testing.T) {
	now := time.Now()
	s := reprocess.Status{Versions: []reprocess.VersionStatus{
		{Version: "v5", Phase: job.Aborted, EndedAt: &now},
		{Version: "v4", Phase: job.CatchingUp},
		{Version: "v3", Phase: job.Standby},
		{Version: "v2", Phase: job.Live},
		{Version: "v1", Phase: job.Verified},
	}}
	if v := mainVersion(s); v == nil || v.Version != "v4" {
		t.Errorf("got %+v", v)
	}
	s.Versions = []reprocess.VersionStatus{{Version: "v3", Phase: job.Standby}, {Version: "v2", Phase: job.Live}}
	if v := mainVersion(s); v == nil || v.Version != "v2" {
		t.Errorf("got %+v", v)
	}
}
