package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/render"
	"github.com/kappactl/kappactl/reprocess/status"
)

func twoVersions() []status.Job {
	return []status.Job{{
		Job: "pageviews", View: "public.pageviews_hourly", Live: ptr("v1"),
		Versions: []status.Version{
			{
				Version: "v2", Phase: job.CatchingUp, LagRecords: ptr(int64(1500)), LagSeconds: ptr(7.0), RecordsPerSecond: ptr(12000.0),
				ETASeconds: ptr(0.2), Verdict: job.Lagging, Reason: "lag 7s on pageviews/0",
				Partitions: []status.Partition{{Topic: "pageviews", Position: ptr(int64(100)), End: ptr(int64(1600)), Verdict: job.Lagging}},
			},
			{Version: "v1", Phase: job.Live, Verdict: job.Unknown, Reason: "no sample yet", DeadLetters: 3},
		},
	}}
}

func TestStatusIsTabSeparatedInAPipe(t *testing.T) {
	var b strings.Builder
	if err := printStatuses(&b, render.Style{}, twoVersions(), false, true); err != nil {
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
	if err := printStatuses(&b, render.Style{People: true}, twoVersions(), true, true); err != nil {
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
	s := status.Job{
		Deployments: []status.Deployment{{Deployment: 4, Version: "v2", State: job.Observing, ObserveUntil: &until}},
		Warnings:    []string{"table public.hits__v2 has 20000 dead rows"},
	}
	text := deploymentLines(s) + warningLines(render.Style{}, s)
	for _, want := range []string{"deployment 4 of v2: observing, rollback window until 2026-03-04T05:06:07Z\n", "warning: table public.hits__v2 has 20000 dead rows\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	v := status.Version{Phase: job.Standby, StandbyUntil: &until, Reason: "2 partitions within limits"}
	if got, want := reasonOf(v), "kept until 2026-03-04T05:06:07Z; 2 partitions within limits"; got != want {
		t.Errorf("reason %q, want %q", got, want)
	}
	v.Pinned, v.StaleSince = true, &until
	if got, want := reasonOf(v), "pinned; stale since 2026-03-04T05:06:07Z; 2 partitions within limits"; got != want {
		t.Errorf("reason %q, want %q", got, want)
	}
}

func TestStatusOfOneJobShowsAcceptedGapsToPeople(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	jobs := twoVersions()
	for i := range int64(gapLines + 2) {
		jobs[0].Versions[0].Gaps = append(jobs[0].Versions[0].Gaps, status.Gap{Topic: "a", From: 10 * i, To: 10*i + 3, Counted: i == 1, By: "ann", At: at})
	}
	var b strings.Builder
	if err := printStatuses(&b, render.Style{People: true}, jobs, true, true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\nv2: accepted gap a/0 [0,3): the results lack 3 offsets; accepted 2026-03-04T05:06:07Z by ann\n",
		"\nv2: accepted gap a/0 [10,13): the results hold 3 offsets that the log has lost; accepted 2026",
		"\nv2: 2 accepted gaps more (kappactl status pageviews -o json has each)\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestReadinessIsNeverGivenForUnknown(t *testing.T) {
	s := status.Job{Deployments: []status.Deployment{{Version: "v9", ExitCode: ptr(7)}, {Version: "v8", ExitCode: ptr(6)}}}
	for name, c := range map[string]struct {
		v    *status.Version
		want job.ExitCode
	}{
		"no version":       {nil, 3},
		"ready":            {&status.Version{Phase: job.Live, Verdict: job.Ready}, 0},
		"overtaken":        {&status.Version{Version: "v8", Phase: job.Verified, Verdict: job.Ready}, 6},
		"ready but paused": {&status.Version{Phase: job.CaughtUp, Verdict: job.Ready, Paused: true}, 3},
		"unknown":          {&status.Version{Phase: job.Live, Verdict: job.Unknown}, 3},
		"lagging":          {&status.Version{Phase: job.CatchingUp, Verdict: job.Lagging}, 3},
		"unhealthy":        {&status.Version{Phase: job.Live, Verdict: job.Unhealthy}, 8},
		"gap":              {&status.Version{Version: "v9", Phase: job.CatchingUp, Verdict: job.Unhealthy}, 7},
		"failed by checks": {&status.Version{Phase: job.Failed, Verdict: job.Unknown, ExitCode: ptr(5)}, 5},
		"retired":          {&status.Version{Phase: job.Retired, Verdict: job.Unknown}, 8},
	} {
		if got := exitOf(s, c.v); got != c.want {
			t.Errorf("%s: exit %d, want %d", name, got, c.want)
		}
	}
}

func TestAQuestionAboutAJobIsAboutItsNewestCandidate(t *testing.T) {
	now := time.Now()
	s := status.Job{Versions: []status.Version{
		{Version: "v5", Phase: job.Aborted, EndedAt: &now},
		{Version: "v4", Phase: job.CatchingUp},
		{Version: "v3", Phase: job.Standby},
		{Version: "v2", Phase: job.Live},
		{Version: "v1", Phase: job.Verified},
	}}
	if v := s.Main(); v == nil || v.Version != "v4" {
		t.Errorf("got %+v", v)
	}
	s.Versions = []status.Version{{Version: "v3", Phase: job.Standby}, {Version: "v2", Phase: job.Live}}
	if v := s.Main(); v == nil || v.Version != "v2" {
		t.Errorf("got %+v", v)
	}
}

func TestAVersionOfUntilStagedIsShownAsHeld(t *testing.T) {
	t.Parallel()
	f := newFlow(t)
	f.start("deploy", pageviews(), "--until", "staged", "--detach")
	f.ends(job.ExitOK)
	for _, args := range [][]string{{"status"}, {"status", "pageviews"}, {"status", "pageviews", "v1"}, {"status", "-o", "csv"}} {
		f.start(args...)
		f.ends(job.ExitOK)
		if text := f.out.String(); !strings.Contains(text, "held by deploy --until staged") || strings.Contains(text, "waiting for an agent") {
			t.Errorf("%v: %s", args, text)
		}
	}
	f.start("status", "pageviews", "-o", "json")
	f.ends(job.ExitOK)
	if !strings.Contains(f.out.String(), `"reason_code": "held"`) {
		t.Errorf("%s", f.out)
	}
}
