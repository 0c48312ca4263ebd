package tui

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
)

func (m *Model) takes(t *testing.T, next func() (Detail, error)) {
	t.Helper()
	d, err := next()
	if err != nil {
		t.Fatal(err)
	}
	m.answer(looked{detail: &d})
}

func TestTheEndOfTheDeploymentEndsTheProgramWithItsCode(t *testing.T) {
	for _, c := range []struct {
		state job.DeploymentState
		phase job.Phase
		code  *int
		want  job.ExitCode
	}{
		{job.Settled, job.Live, nil, job.ExitOK},
		{job.RolledBack, job.Standby, ptr(9), job.ExitRolledBack},
		{job.DeployAborted, job.Aborted, nil, job.ExitFailed},
		{job.DeployFailed, job.Failed, ptr(8), job.ExitUnhealthy},
	} {
		m := opened(t, Options{Job: "pageviews"}, 80, 24)
		m.takes(t, with(job.CatchingUp, job.RollingOut, nil))
		if m.exit != exitNone {
			t.Fatal("ended while rolling out")
		}
		m.takes(t, with(c.phase, c.state, c.code))
		outcome, err := m.outcome()
		if m.exit != exitEnded || outcome.Code != c.want || err != nil || len(outcome.Summary) != 5 {
			t.Errorf("%s: exit %q, code %d, %v, %q", c.state, m.exit, outcome.Code, err, outcome.Summary)
		}
	}
}

func TestWhatAPersonCanStillDecideDoesNotEndTheProgram(t *testing.T) {
	m := opened(t, Options{Job: "pageviews"}, 80, 24)
	for _, next := range []func() (Detail, error){
		with(job.CaughtUp, job.Waiting, ptr(5)), with(job.Verified, job.Waiting, nil), with(job.Live, job.Observing, nil),
	} {
		if m.takes(t, next); m.exit != exitNone {
			t.Fatalf("ended: %+v", m.detail.Deployment)
		}
	}
}

func TestADeploymentThatEndedBeforeIsOnlyLookedAt(t *testing.T) {
	m := opened(t, Options{Job: "pageviews"}, 80, 24)
	m.takes(t, with(job.Live, job.Settled, nil))
	if m.exit != exitNone {
		t.Error("ended at once")
	}
	m = opened(t, Options{}, 80, 24)
	m.job, m.page = "pageviews", pageDeployment
	m.takes(t, with(job.CatchingUp, job.RollingOut, nil))
	if m.takes(t, with(job.Live, job.Settled, nil)); m.exit != exitNone {
		t.Error("ended although it was started for all jobs")
	}
}

func TestTheEndWaitsForAnAnswerThatIsRead(t *testing.T) {
	m := opened(t, Options{Job: "pageviews"}, 80, 24)
	m.takes(t, with(job.Live, job.Observing, nil))
	m.press("r", "r")
	m.takes(t, with(job.Standby, job.RolledBack, ptr(9)))
	if m.exit != exitNone {
		t.Fatal("ended while an act is asked for")
	}
	if m.press("esc", "") == nil || m.exit != exitEnded {
		t.Error("did not end after it")
	}
}

func TestSummaries(t *testing.T) {
	read := func(next func() (Detail, error), code job.ExitCode) string {
		d, err := next()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(Summary(d, code, noon()), "\n")
	}
	for _, c := range []struct{ got, want string }{
		{read(with(job.Live, job.Settled, nil), 0), `pageviews v2 is live: its deployment is settled (exit code 0)
  records   2,333,791 records in 5m, 12 dead letters
  readers   see v1 through public.pageviews_hourly
  checks    1 of 3 passed; close_to_live fail, no_nulls has not run
  next      kappactl status pageviews`},
		{read(with(job.Aborted, job.DeployAborted, nil), 1), `pageviews v2 is aborted: its deployment is aborted (exit code 1)
  records   2,333,791 records in 5m, 12 dead letters
  cause     somebody aborted it
  checks    1 of 3 passed; close_to_live fail, no_nulls has not run
  next      kappactl status pageviews`},
		{read(with(job.CatchingUp, job.RollingOut, nil), 0), `pageviews v2 is catching up: its deployment is rolling out and goes on
  records   2,333,791 records in 5m, 12 dead letters
  readers   see v1 through public.pageviews_hourly
  checks    1 of 3 passed; close_to_live fail, no_nulls has not run
  next      kappactl watch pageviews`},
		{read(with(job.Verified, job.Waiting, nil), 0), `pageviews v2 is verified: its deployment is waiting and goes on
  records   2,333,791 records in 5m, 12 dead letters
  readers   see v1 through public.pageviews_hourly
  checks    1 of 3 passed; close_to_live fail, no_nulls has not run
  next      kappactl promote pageviews v2`},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Error(diff)
		}
	}
}
