package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/abtest"
	"github.com/kappactl/kappactl/abtest/judge"
	"github.com/kappactl/kappactl/abtest/policy"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

// bandit is a run of two days that has moved its weights to v2 and is in a state.
func bandit(state abtest.State) abtest.Course {
	at := func(ago time.Duration) time.Time { return noon().Add(-ago) }
	c := abtest.Course{Now: noon(), Status: abtest.Status{
		Job: "pageviews", Run: 3, State: state, Reason: "run 3 of the experiment of pageviews began: v1 50%, v2 50%, of 100% of the subjects",
		Assign: job.AssignSticky, Coverage: 1, Epoch: 4, StartedAt: at(48 * time.Hour), StartedBy: "ana@laptop",
		Arms: []abtest.Arm{
			{Version: "v1", Control: true, Weight: .1, Phase: job.Live, Verdict: job.Ready, Subjects: 5124},
			{Version: "v2", Weight: .9, Phase: job.Verified, Verdict: job.Ready, Subjects: 21_870},
		},
		SampleRatio: policy.Mismatch{ChiSquared: 1.2, Freedom: 1, P: .27},
	}}
	for i, w := range []float64{.5, .4, .2, .1} {
		d := abtest.Decision{
			Run: 3, Number: i + 1, Epoch: i + 1, Verdict: abtest.Weighed, By: "kappactl", At: at(time.Duration(48-12*i) * time.Hour),
			Weights: []abtest.Weight{{Version: "v1", Weight: w}, {Version: "v2", Weight: 1 - w}}, Message: "the weights are those of the rewards",
		}
		if i == 0 {
			d.Verdict, d.By, d.Message = abtest.Started, "ana@laptop", c.Reason
		}
		c.Decisions = append(c.Decisions, d)
	}
	if state == abtest.Paused {
		c.Reason = "guardrail errors is breached: 2.1% of v2, at most 1%"
		c.Decisions = append(c.Decisions, abtest.Decision{
			Run: 3, Number: 5, Epoch: 4, Verdict: abtest.Stopped, By: "kappactl", At: at(time.Hour), Weights: c.Decisions[3].Weights, Message: c.Reason,
		})
	}
	for i, v := range []string{"v1", "v2"} {
		curve := abtest.Curve{Version: v}
		for n := range 60 {
			curve.Points = append(curve.Points, abtest.CurvePoint{
				At: at(48*time.Hour - time.Duration(n)*48*time.Minute), Subjects: int64(n * 90), Mean: .1 + .015*float64(i) + .05/float64(n+1),
			})
		}
		c.Curves = append(c.Curves, curve)
	}
	seen := at(20 * time.Second)
	c.Comparison = &abtest.Comparison{Mode: job.ABBandit, Next: judge.Wait, NextReason: "it runs for another 1h30m at least", Rewards: &abtest.RewardStatus{Source: "http"}}
	c.Comparison.Estimates.Arms = []judge.ArmEstimate{
		{Version: "v1", Subjects: 4920, Mean: .101, Best: ptr(.004)},
		{Version: "v2", Subjects: 20_311, Mean: .1161, Difference: ptr(.0151), Lo: ptr(.0012), Hi: ptr(.029), Best: ptr(.996), Loss: ptr(.00001)},
	}
	c.Comparison.Guards = []abtest.GuardStatus{
		{Name: "errors", Action: job.GuardRollback, State: "pass", Reason: "0.2% of v2, at most 1%", SeenAt: &seen},
		{Name: "latency", Action: job.GuardPause, State: "no_data", Reason: "no data of v2 at 3 looks in a row", SeenAt: &seen},
		{Name: "refunds", Action: job.GuardWarn},
	}
	if state == abtest.Paused {
		c.Comparison.Guards[0].State, c.Comparison.Guards[0].Breached, c.Comparison.Guards[0].Reason = "fail", true, "2.1% of v2, at most 1%"
	}
	return c
}

func experimentDetail(state abtest.State) Detail {
	d := detail(liveVersion(4))
	c := bandit(state)
	d.Experiment = &c
	return d
}

func experimentPage(t *testing.T, state abtest.State, o Options) *Model {
	t.Helper()
	o.Job = "pageviews"
	m := opened(t, o, 120, 40)
	d := experimentDetail(state)
	m.answer(looked{detail: &d})
	m.pressAll("t")
	m.answer(looked{detail: &d})
	return m
}

func TestTheExperimentPageShowsArmsWeightsRewardsAndGuardrails(t *testing.T) {
	m := experimentPage(t, abtest.Running, Options{})
	shows(t, m, "pageviews  experiment", "run 3", "● running, began 2d ago", "sticky, coverage 100%, epoch 4", "v1 control", "10%", "21,870",
		"subjects come as the weights say", "✓ errors", "0.2% of v2", "▲ latency", "no data of v2", "refunds", "not looked at yet", "the weights are those of the rewards", "wait  it runs for another 1h30m at least", "+0.015 (+0.0012 to +0.029)", "99.6%",
		"space pause", "x stop")
	hides(t, m, "p promote") // the control is selected
	m.pressAll("j")
	shows(t, m, "p promote")
	m = experimentPage(t, abtest.Paused, Options{})
	shows(t, m, "▲ paused", "✗ errors", "breached")
	if m.pressAll("space"); m.confirm != nil {
		t.Error("a pause of what is paused")
	}
	shows(t, m, "kappactl ab resume pageviews --accept REASON")
	m.pressAll("esc")
	shows(t, m, "t experiment")
}

func TestAJobWithoutAnExperimentSaysSo(t *testing.T) {
	m := opened(t, Options{Job: "pageviews"}, 120, 40)
	d := detail(liveVersion(2))
	m.answer(looked{detail: &d})
	hides(t, m, "t experiment")
	m.pressAll("t")
	m.answer(looked{detail: &d})
	shows(t, m, "has had no experiment: kappactl ab start pageviews")
	if m.pressAll("space", "x", "p"); m.confirm != nil {
		t.Error("an act without an experiment")
	}
}

func TestActsOnExperimentsAreConfirmed(t *testing.T) {
	for key, want := range map[string]Act{
		"space": {Verb: ledger.ABPause, Ref: job.Ref{Job: "pageviews"}},
		"x":     {Verb: ledger.ABStop, Ref: job.Ref{Job: "pageviews"}},
		"p":     {Verb: ledger.Promote, Ref: job.Ref{Job: "pageviews", Number: 2}},
	} {
		m := experimentPage(t, abtest.Running, Options{})
		if key == "p" {
			m.pressAll("p")
			shows(t, m, "select another arm: the control is live")
			m.pressAll("j")
		}
		m.pressAll(key)
		if m.confirm == nil {
			t.Fatalf("%s asks for nothing", key)
		}
		if m.confirm.act != want {
			t.Errorf("%s asks for %+v", key, m.confirm.act)
		}
		shows(t, m, want.Command(), "type pageviews to confirm")
		m.pressAll(strings.Split("pageviews", "")...)
		if m.press("enter", "") == nil || m.confirm.stage != stageDoing {
			t.Errorf("%s is not done", key)
		}
	}
	if got := (Act{Verb: ledger.ABStop, Ref: ref}).Command(); got != "kappactl ab stop pageviews" {
		t.Error(got)
	}
	m := experimentPage(t, abtest.Running, Options{ReadOnly: true})
	if m.pressAll("space", "j", "p", "x"); m.confirm != nil {
		t.Error("an act in a window to look only")
	}
	m = experimentPage(t, abtest.Running, Options{})
	if m.pressAll("a", "r", "n"); m.confirm != nil {
		t.Error("an act on versions on the page of the experiment")
	}
	m = experimentPage(t, abtest.Ended, Options{})
	if m.pressAll("space", "x", "j", "p"); m.confirm != nil {
		t.Error("an act on an experiment that has ended")
	}
}
