package report

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/abtest"
	"github.com/kappactl/kappactl/abtest/judge"
	"github.com/kappactl/kappactl/internal/job"
)

// course is a run whose weights moved to v2, over a day.
func course() abtest.Course {
	c := abtest.Course{Now: start.Add(24 * time.Hour), Status: abtest.Status{
		Job: "orders", Run: 2, State: abtest.Running, Reason: "the arms do not <differ> enough", Assign: job.AssignSticky, Coverage: 1, Epoch: 3, StartedAt: start,
		StartedBy: "ann@build", Arms: []abtest.Arm{{Version: "v1", Control: true, Weight: .2, Subjects: 900}, {Version: "v2", Weight: .8, Subjects: 2100}},
	}}
	for i, w := range []float64{.5, .35, .2} {
		c.Decisions = append(c.Decisions, abtest.Decision{
			Number: i + 1, Epoch: i + 1, Verdict: abtest.Weighed, At: start.Add(time.Duration(i*8) * time.Hour), By: "kappactl", Message: "<moved>",
			Weights: []abtest.Weight{{Version: "v1", Weight: w}, {Version: "v2", Weight: 1 - w}},
		})
	}
	for i, v := range []string{"v1", "v2"} {
		curve := abtest.Curve{Version: v}
		for n := range 20 {
			curve.Points = append(curve.Points, abtest.CurvePoint{At: start.Add(time.Duration(n+2) * time.Hour), Subjects: int64(n), Mean: .1 + .02*float64(i)})
		}
		c.Curves = append(c.Curves, curve)
	}
	c.Comparison = &abtest.Comparison{Next: judge.Wait, NextReason: "it runs for <another> hour", Rewards: &abtest.RewardStatus{}}
	c.Comparison.Estimates.Arms = []judge.ArmEstimate{
		{Version: "v1", Subjects: 800, Mean: .1, Best: new(.004)},
		{Version: "v2", Subjects: 2000, Mean: .12, Difference: new(.02), Lo: new(.0012), Hi: new(.039), Best: new(.996), Loss: new(.00001)},
	}
	c.Comparison.Guards = []abtest.GuardStatus{{Name: "errors", Action: job.GuardRollback, State: "fail", Breached: true, Reason: "2% <at most> 1%"}}
	return c
}

func wellFormedPlots(t *testing.T, page string) {
	t.Helper()
	for _, svg := range regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(page, -1) {
		wellFormed(t, svg)
	}
}

func TestTheExperimentPageIsOneWellFormedFile(t *testing.T) {
	var b strings.Builder
	if err := Experiment(&b, course()); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	wellFormedPlots(t, text)
	for _, want := range []string{
		"<h1>orders, run 2", "the arms do not &lt;differ&gt; enough", "&lt;moved&gt;", "2% &lt;at most&gt; 1%", "breached", "v1 50%, v2 50%", "v2 80%", "&#43;6h",
		`class="line arm0" d="M0 100`, `class="line arm1"`, "Mean reward", "0.0012 to 0.039", "99.6%", "<b>wait</b>, it runs for &lt;another&gt; hour",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, not := range []string{"<script", "http://", "https://", "NaN", "Inf", "url("} {
		if strings.Contains(text, not) {
			t.Errorf("the page has %q", not)
		}
	}
	if n := strings.Count(text, `<path class="line`); n != 4 {
		t.Errorf("%d lines in the plots, not two each", n)
	}
}

func TestAnExperimentWithoutRewardsOrTimeHasAPage(t *testing.T) {
	c := course()
	c.Curves, c.Comparison, c.Now, c.Decisions = nil, nil, c.StartedAt, c.Decisions[:1]
	c.SampleRatio.Impossible = true
	var b strings.Builder
	if err := Experiment(&b, c); err != nil {
		t.Fatal(err)
	}
	wellFormedPlots(t, b.String())
	for _, want := range []string{"names no reward", "Do not trust the comparison"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(b.String(), "NaN") {
		t.Error("a coordinate is not a number")
	}
}

func TestTheExperimentPageThatCannotBeWrittenIsAnError(t *testing.T) {
	r, w := io.Pipe()
	r.CloseWithError(errors.New("full"))
	if err := Experiment(w, course()); err == nil || !strings.Contains(fmt.Sprint(err), "full") {
		t.Error(err)
	}
}
