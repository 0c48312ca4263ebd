package tui

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/status"
)

// looksAt runs a plain watch over a script, a second a look, until it is done or the script is over.
func looksAt(t *testing.T, o Options, looks ...func() (Detail, error)) (out, notices string, outcome Outcome, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c := clock{at: noon()}
	o.Out, o.Notices, o.Now = &stdout, &stderr, c.now
	p := plainWatch{src: &scripted{details: looks}, options: o, lines: newLines()}
	for range looks {
		var done bool
		if outcome, done, err = p.look(t.Context()); done || err != nil {
			break
		}
		c.at = c.at.Add(time.Second)
	}
	return stdout.String(), stderr.String(), outcome, err
}

func times(n int, f func() (Detail, error)) []func() (Detail, error) {
	out := make([]func() (Detail, error), n)
	for i := range out {
		out[i] = f
	}
	return out
}

func TestPlainPrintsPhasesAtOnceAndProgressEveryTenSeconds(t *testing.T) {
	script := append(times(25, with(job.Replaying, job.RollingOut, nil)), times(3, with(job.CatchingUp, job.RollingOut, nil))...)
	script = append(script, with(job.Verified, job.Waiting, nil))
	out, notices, outcome, err := looksAt(t, Options{Job: "pageviews"}, script...)
	want := `2026-03-14T12:00:00Z pageviews v2 replaying: 3,100 records, 9s behind, 19.1k/s, 12 dead letters, lagging
2026-03-14T12:00:00Z pageviews v1 live: nothing unread, 220/s, ready
2026-03-14T12:00:10Z pageviews v2 replaying: 3,100 records, 9s behind, 19.1k/s, 12 dead letters, lagging
2026-03-14T12:00:20Z pageviews v2 replaying: 3,100 records, 9s behind, 19.1k/s, 12 dead letters, lagging
2026-03-14T12:00:25Z pageviews v2 catching up: 3,100 records, 9s behind, 19.1k/s, 12 dead letters, lagging
2026-03-14T12:00:28Z pageviews v2 verified: 3,100 records, 9s behind, 19.1k/s, 12 dead letters, lagging
`
	if diff := cmp.Diff(want, out); diff != "" || notices != "" || err != nil {
		t.Errorf("%v %q\n%s", err, notices, diff)
	}
	if outcome.Code != 0 || len(outcome.Summary) != 5 || !strings.Contains(outcome.Summary[4], "kappactl promote pageviews v2") {
		t.Errorf("outcome %+v", outcome)
	}
}

func TestPlainEndsWithTheCodeOfTheDeployment(t *testing.T) {
	_, _, outcome, err := looksAt(t, Options{Job: "pageviews"}, with(job.CatchingUp, job.RollingOut, nil), with(job.CaughtUp, job.Waiting, ptr(5)))
	if outcome.Code != job.ExitChecks || err != nil {
		t.Errorf("code %d, %v", outcome.Code, err)
	}
	_, _, outcome, err = looksAt(t, Options{Job: "pageviews"}, with(job.Live, job.Settled, nil))
	if outcome.Code != 0 || len(outcome.Summary) != 5 || err != nil {
		t.Errorf("a settled deployment: %+v, %v", outcome, err)
	}
}

func TestPlainWaitsForALostServerAndSaysSoOnce(t *testing.T) {
	script := append(times(5, refused), with(job.CatchingUp, job.RollingOut, nil), refused, with(job.Live, job.Settled, nil))
	out, notices, _, err := looksAt(t, Options{Job: "pageviews"}, script...)
	want := "no answer; waiting for one: connection refused\nanswers again\nno answer; waiting for one: connection refused\nanswers again\n"
	if diff := cmp.Diff(want, notices); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if n := strings.Count(out, "\n"); n != 3 {
		t.Errorf("%d lines:\n%s", n, out)
	}
}

func TestPlainRefusesAJobThatDoesNotExist(t *testing.T) {
	unknown := &job.Refusal{Code: job.ExitUsage, Cause: "no job nope"}
	_, _, _, err := looksAt(t, Options{Job: "nope"}, func() (Detail, error) { return Detail{}, unknown })
	if !errors.Is(err, unknown) {
		t.Errorf("got %v", err)
	}
}

func TestPlainHasNoControlCodes(t *testing.T) {
	hostile := func() (Detail, error) {
		v := catchingUpVersion(1)
		v.Verdict, v.Reason = job.Unhealthy, "\x1b[31mred\r\nnext \x07"
		return detail(v), nil
	}
	out, _, _, err := looksAt(t, Options{}, times(12, hostile)...)
	if err != nil || strings.ContainsAny(out, "\x1b\r\x07") || strings.Count(out, "\n") != 2 {
		t.Errorf("%v: %q", err, out)
	}
}

func TestPlainSharesTheTenSecondsBetweenJobs(t *testing.T) {
	l := newLines()
	var jobs []status.Job
	for i := range 5 {
		s := pageviews(catchingUpVersion(1), liveVersion(1))
		s.Job = job.Name(fmt.Sprintf("job%d", i))
		jobs = append(jobs, s)
	}
	if due := l.take(noon(), jobs...); len(due) != 10 {
		t.Fatalf("%d lines at first", len(due))
	}
	seen := map[job.Name]int{}
	for second := 1; second <= 100; second++ {
		for _, d := range l.take(noon().Add(time.Duration(second)*time.Second), jobs...) {
			seen[d.Job]++
		}
	}
	if diff := cmp.Diff(map[job.Name]int{"job0": 2, "job1": 2, "job2": 2, "job3": 2, "job4": 2}, seen); diff != "" {
		t.Error(diff)
	}
}

// slowed is a replay that something slows down, by another amount in every look; gone says in which looks nothing does.
func slowed(looks int, gone func(look int) bool) []func() (Detail, error) {
	var script []func() (Detail, error)
	for i := range looks {
		script = append(script, func() (Detail, error) {
			d, err := with(job.Replaying, job.RollingOut, nil)()
			if !gone(i) {
				warned(&d.Status.Versions[0], reason.ReplaySlowed("a1", fmt.Sprintf("a replica is %ds behind (over 10s)", 40+i)))
				d.Status.WarningReasons = []reason.Reason{reason.OldTransaction(411, fmt.Sprintf("pid 411, in a transaction for 3h%dm", i))}
			}
			return d, err
		})
	}
	return script
}

func TestPlainPrintsAWarningWhenItComesUpAndNotWhileItCountsOn(t *testing.T) {
	out, _, _, err := looksAt(t, Options{Job: "pageviews"}, slowed(70, func(look int) bool { return look == 3 || look > 4 && look < 68 })...)
	var warnings []string
	for _, l := range strings.Split(out, "\n") {
		if strings.Contains(l, "warning") {
			warnings = append(warnings, l)
		}
	}
	const held = ": rows that agents have replaced since then cannot be removed, and a flip may wait for it"
	want := []string{
		"2026-03-14T12:00:00Z pageviews v2 warning: the replay is slowed down on agent a1: a replica is 40s behind (over 10s)",
		"2026-03-14T12:00:00Z pageviews warning: pid 411, in a transaction for 3h0m" + held,
		"2026-03-14T12:01:08Z pageviews v2 warning: the replay is slowed down on agent a1: a replica is 108s behind (over 10s)",
		"2026-03-14T12:01:08Z pageviews warning: pid 411, in a transaction for 3h68m" + held,
	}
	if diff := cmp.Diff(want, warnings); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestPlainJSONHasWarnings(t *testing.T) {
	out, _, _, err := looksAt(t, Options{Job: "pageviews", JSON: true}, slowed(1, func(int) bool { return false })...)
	if want := `{"at":"2026-03-14T12:00:00Z","kind":"warning","job":"pageviews","version":"v2","message":"the replay is slowed`; err != nil || !strings.Contains(out, want) {
		t.Errorf("%v: %s", err, out)
	}
}

func TestPlainSaysPausedOnce(t *testing.T) {
	paused := func() (Detail, error) {
		v := replayingVersion(1)
		v.Paused, v.Verdict, v.Reason, v.ReasonCode = true, job.Stalled, "paused", reason.CodePaused
		return detail(v), nil
	}
	out, _, _, err := looksAt(t, Options{Job: "pageviews"}, paused)
	if err != nil || strings.Count(out, "paused") != 1 || strings.Contains(out, "stalled") {
		t.Errorf("%v: %q", err, out)
	}
}

func TestPlainJSONIsOneObjectALine(t *testing.T) {
	out, _, _, err := looksAt(t, Options{Job: "pageviews", JSON: true}, with(job.CatchingUp, job.RollingOut, nil), with(job.Live, job.Settled, nil))
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, l := range strings.Split(strings.TrimSpace(out), "\n") {
		var o map[string]any
		if err := json.Unmarshal([]byte(l), &o); err != nil {
			t.Fatalf("%v: %s", err, l)
		}
		kinds = append(kinds, fmt.Sprint(o["kind"], " ", o["phase"]))
	}
	if diff := cmp.Diff([]string{"phase catching_up", "phase live", "phase live", "end live"}, kinds); diff != "" {
		t.Error(diff)
	}
}

func TestPlainEndsWithItsContext(t *testing.T) {
	cause := errors.New("interrupted here")
	ctx, cancel := context.WithCancelCause(t.Context())
	src := &scripted{details: []func() (Detail, error){func() (Detail, error) {
		cancel(cause)
		return with(job.CatchingUp, job.RollingOut, nil)()
	}}}
	_, err := Plain(ctx, src, Options{Job: "pageviews", Out: &bytes.Buffer{}, Notices: &bytes.Buffer{}, Now: noon})
	if !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}
