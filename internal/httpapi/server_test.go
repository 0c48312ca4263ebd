package httpapi

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kappactl/kappactl/internal/job"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func get(t *testing.T, s *Server, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
	return w.Code, w.Body.String()
}

func server(ready error, versions []Version, err error) *Server {
	return New(Deps{
		Ready:    func(context.Context) error { return ready },
		Versions: func(context.Context) ([]Version, error) { return versions, err },
		Work:     func() Work { return Work{Commits: 3, LeaseLosses: 1} },
	})
}

func TestReadyzSaysWhyNot(t *testing.T) {
	if code, body := get(t, server(nil, nil, nil), "/readyz"); code != 200 || body != "ok\n" {
		t.Errorf("ready: %d %q", code, body)
	}
	s := server(errors.New("the database does not answer"), nil, nil)
	if code, body := get(t, s, "/readyz"); code != 503 || body != "the database does not answer\n" {
		t.Errorf("not ready: %d %q", code, body)
	}
	if code, _ := get(t, s, "/healthz"); code != 200 {
		t.Errorf("an agent that waits for its database is alive; /healthz says %d", code)
	}
}

func TestMetricsTellWhatIsKnownAndLeaveOutWhatIsNot(t *testing.T) {
	lag, rate := int64(7), 1.5
	s := server(nil, []Version{
		{Ref: job.Ref{Job: "a", Number: 2}, Phase: job.Live, Verdict: job.Ready, LagRecords: &lag, RecordsPerSecond: &rate, DeadLetters: 4, Partitions: []Partition{
			{Topic: "t", ID: 1, LagRecords: &lag},
		}, Checks: []Check{{Name: "close", Stage: "after", Outcome: "no answer", Seconds: 0.5, Failures: 1}}},
		{Ref: job.Ref{Job: "a", Number: 1}, Phase: job.Standby, Verdict: job.Unknown},
	}, nil)
	s.Committed(3 * time.Millisecond)
	_, body := get(t, s, "/metrics")
	for _, want := range []string{
		`kappactl_phase{job="a",phase="live",version="v2"} 1`, `kappactl_lag_records{job="a",version="v2"} 7`,
		`kappactl_dead_letters{job="a",version="v2"} 4`, `kappactl_partition_lag_records{job="a",partition="1",topic="t",version="v2"} 7`, `kappactl_verdict{job="a",verdict="unknown",version="v1"} 1`,
		`kappactl_agent_commits_total 3`, `kappactl_agent_lease_losses_total 1`, `kappactl_agent_database_up 1`, `kappactl_commit_seconds_count 1`,
		`kappactl_check_outcome{check="close",job="a",outcome="no answer",stage="after",version="v2"} 1`,
		`kappactl_check_failures{check="close",job="a",stage="after",version="v2"} 1`, `kappactl_check_seconds{check="close",job="a",stage="after",version="v2"} 0.5`,
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
	if strings.Contains(body, `kappactl_lag_records{job="a",version="v1"}`) {
		t.Error("an unknown lag was given a number")
	}
}

func TestMetricsShowTheArchive(t *testing.T) {
	s := server(nil, nil, nil)
	left := 60.0
	s.deps.Archived = func(context.Context) ([]Archived, error) {
		return []Archived{
			{Topic: "t", Partition: 1, State: "late", Behind: new(int64(7)), RetentionSeconds: &left, Records: 5, Bytes: 9},
			{Topic: "t", Partition: 2, State: "waiting"},
		}, nil
	}
	_, body := get(t, s, "/metrics")
	for _, want := range []string{
		`kappactl_archive_state{partition="1",state="late",topic="t"} 1`, `kappactl_archive_behind_offsets{partition="1",topic="t"} 7`,
		`kappactl_archive_retention_seconds{partition="1",topic="t"} 60`, `kappactl_archive_bytes{partition="1",topic="t"} 9`,
		`kappactl_archive_state{partition="2",state="waiting",topic="t"} 1`,
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
	if strings.Contains(body, `kappactl_archive_behind_offsets{partition="2"`) {
		t.Error("an unknown lag was given a number")
	}
}

func TestMetricsShowSchedules(t *testing.T) {
	s := server(nil, nil, nil)
	next, age := -30.0, 90.0
	s.deps.Scheduled = func(context.Context) ([]Scheduled, error) {
		return []Scheduled{
			{Job: "a", State: "late", NextIn: &next, LastAge: &age, LastFailed: new(true)},
			{Job: "b", State: "paused", LastFailed: new(false)},
		}, nil
	}
	_, body := get(t, s, "/metrics")
	for _, want := range []string{
		`kappactl_schedule_state{job="a",state="late"} 1`, `kappactl_schedule_next_run_seconds{job="a"} -30`,
		`kappactl_schedule_last_run_age_seconds{job="a"} 90`, `kappactl_schedule_last_run_failed{job="a"} 1`,
		`kappactl_schedule_state{job="b",state="paused"} 1`, `kappactl_schedule_last_run_failed{job="b"} 0`,
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
	if strings.Contains(body, `kappactl_schedule_next_run_seconds{job="b"}`) {
		t.Error("a paused schedule was given a next run")
	}
}

func TestMetricsShowTheLayersOfLambdaVersions(t *testing.T) {
	s := server(nil, nil, nil)
	age, eta, live, rows := 90.0, 4.0, 3, int64(7)
	s.deps.Layers = func(context.Context) ([]Layers, error) {
		return []Layers{
			{
				Ref: job.Ref{Job: "a", Number: 2}, Live: &live, CutAge: &age, Rows: &rows, Kept: 2, Epochs: 1, LastTook: &age, LastFailed: new(true),
				Run: &Run{Seconds: 5, Read: 0.25, ETA: &eta},
			},
			{Ref: job.Ref{Job: "b", Number: 1}, Live: &live, Epochs: 1, Run: &Run{}},
			{Ref: job.Ref{Job: "c", Number: 1}},
		}, nil
	}
	_, body := get(t, s, "/metrics")
	for _, want := range []string{
		`generation{job="a",version="v2"} 3`, `cut_age_seconds{job="a",version="v2"} 90`, `rows{job="a",version="v2"} 7`,
		`kept_generations{job="a",version="v2"} 2`, `epochs{job="a",version="v2"} 1`, `running{job="a",version="v2"} 1`,
		`run_read_ratio{job="a",version="v2"} 0.25`, `run_eta_seconds{job="a",version="v2"} 4`, `last_run_failed{job="a",version="v2"} 1`,
		`run_read_ratio{job="b",version="v1"} 0`, `running{job="c",version="v1"} 0`,
	} {
		if !strings.Contains(body, "kappactl_batch_"+want+"\n") {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
	for _, unknown := range []string{`run_eta_seconds{job="b"`, `bytes{job="a"`, `run_age_seconds{job="c"`, `last_run_failed{job="b"`} {
		if strings.Contains(body, "kappactl_batch_"+unknown) {
			t.Errorf("%s was given a number", unknown)
		}
	}
}

func TestMetricsGoOnWithoutTheDatabase(t *testing.T) {
	code, body := get(t, server(nil, nil, errors.New("away")), "/metrics")
	if code != 200 || !strings.Contains(body, "kappactl_agent_database_up 0\n") {
		t.Errorf("%d %s", code, body)
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server(nil, nil, nil).Serve(ctx, l) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get("http://" + l.Addr().String() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil || string(body) != "ok\n" {
		t.Errorf("got %q, %v", body, err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
