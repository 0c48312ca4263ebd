package tui

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/reason"
	"github.com/kappactl/kappactl/reprocess/ledger"
	"github.com/kappactl/kappactl/reprocess/status"
)

// skeleton is where things stand: each label with its line, and the lines of titles as they are.
func skeleton(m *Model) string {
	var out []string
	for i, l := range strings.Split(ansi.Strip(screen(m)), "\n") {
		if label := strings.TrimSpace(l[:min(len(l), margin)]); label != "" && strings.ToUpper(label) == label && strings.ContainsAny(label, "PWTCB") {
			if titles, _, ok := strings.Cut(l, "VERDICT"); ok && strings.Contains(l, "READS") {
				label = titles
			}
			out = append(out, fmt.Sprintf("%d %s", i, label))
		}
	}
	return strings.Join(out, "\n")
}

// moments are one version while it goes on: every number gets shorter or longer, and verdicts change.
func moments() []status.Version {
	var out []status.Version
	for i, lag := range []int64{8_000_000, 750_000, 99_000, 1_100, 42, 0} {
		parts := []status.Partition{
			part("pageviews", 0, 9_000_000-lag, 9_000_000, time.Duration(lag)*time.Millisecond/3, 1.7*float64(i*i*i)*1000, job.Lagging, "behind"),
			part("pageviews", 1, 9_000_000-lag/2, 9_000_000, time.Duration(lag)*time.Millisecond/9, 12, job.Lagging, "behind"),
		}
		if i%2 == 1 {
			parts[0].Verdict, parts[0].Reason = job.NotConverging, fmt.Sprintf("%d records, 4m10s behind; it was 401870 a minute ago", lag)
		}
		v := version("v2", job.CatchingUp, parts[0].Verdict, parts[0].Reason, parts...)
		if lag == 0 {
			v.Verdict, v.Reason = job.Ready, "2 partitions within limits"
		}
		out = append(out, v)
	}
	return out
}

func TestNothingMovesWhileNumbersChange(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 60}} {
		page := opened(t, Options{Job: "pageviews"}, size[0], size[1])
		all := opened(t, Options{}, size[0], size[1])
		var first, firstOfAll string
		for i, v := range moments() {
			watched(page, 3, func(int) Detail { return detail(v, liveVersion(2)) })
			all.answer(looked{overview: &Overview{Agents: 1, Jobs: []status.Job{pageviews(v, liveVersion(2))}}})
			if i == 0 {
				first, firstOfAll = skeleton(page), skeleton(all)
			}
			for _, c := range [][2]string{{first, skeleton(page)}, {firstOfAll, skeleton(all)}} {
				if c[0] != c[1] || c[0] == "" {
					t.Errorf("%dx%d, moment %d:\n%s\nbefore:\n%s", size[0], size[1], i, c[1], c[0])
				}
			}
		}
	}
}

func TestPartitionsChangePlacesEveryFiveSecondsAndAtOnceWithTheirVerdict(t *testing.T) {
	m := opened(t, Options{Job: "pageviews"}, 120, 30)
	first := func(lag0, lag1 int64, verdict0 job.Verdict) int32 {
		m.now = m.now.Add(time.Second)
		d := detail(version("v2", job.CatchingUp, job.Lagging, "behind",
			part("pageviews", 0, 1_000_000-lag0, 1_000_000, time.Second, 1, verdict0, "behind"),
			part("pageviews", 1, 1_000_000-lag1, 1_000_000, time.Second, 1, job.Lagging, "behind")))
		m.answer(looked{detail: &d})
		return m.shownPartitions(*m.focused())[0].Partition
	}
	if got := first(2_000, 1_000, job.Lagging); got != 0 {
		t.Fatalf("partition %d is the worst", got)
	}
	if got := first(1_000, 2_000, job.Lagging); got != 0 {
		t.Error("rows swap with every number")
	}
	if got := first(1_000, 900_000, job.Lagging); got != 1 {
		t.Error("a partition that is much further behind than the others is not the first at once")
	}
	for range 3 {
		first(1_000, 2_000, job.Lagging)
	}
	if got := first(1_000, 2_000, job.Lagging); got != 1 {
		t.Error("the worst partition is not the first after five seconds")
	}
	if got := first(1_000, 2_000, job.Unhealthy); got != 0 {
		t.Error("a partition that wants an act is not the first at once")
	}
}

func TestTheOverviewMarksALiveVersionInTrouble(t *testing.T) {
	sick := liveVersion(2)
	sick.Verdict, sick.Reason = job.Unhealthy, "gap pageviews/1 [4,9)"
	m := opened(t, Options{}, 120, 30)
	m.answer(looked{overview: &Overview{Jobs: []status.Job{pageviews(replayingVersion(2), sick)}}})
	shows(t, m, "v1 ✗", "✗ 1", "✗ v1 live: unhealthy: gap pageviews/1 [4,9)")
}

func TestWhatSomebodyPausedHasNotStalled(t *testing.T) {
	v := replayingVersion(2)
	v.Paused, v.Verdict, v.Reason, v.ReasonCode = true, job.Stalled, "paused", reason.CodePaused
	for i := range v.Partitions {
		p := &v.Partitions[i]
		p.Verdict, p.Reason, p.ReasonCode = job.Stalled, "paused", reason.CodePaused
	}
	m := deployment(t, detail(v, liveVersion(2)), Options{})
	shows(t, m, "▲ paused", "somebody to resume it: press space", "replaying for 42s")
	hides(t, m, "stalled", "paused: ", "paused for")
	m = opened(t, Options{}, 120, 30)
	m.answer(looked{overview: &Overview{Jobs: []status.Job{pageviews(v, liveVersion(2))}}})
	shows(t, m, "▲ paused")
	hides(t, m, "stalled", "✗")
}

func TestWhatWaitsForItsTurnIsCalledQueued(t *testing.T) {
	m := opened(t, Options{}, 200, 30)
	o := fleet()
	m.answer(looked{overview: &o})
	shows(t, m, "· queued: 2 of 2 replay slots in use (agent.replays)", "waits for its turn: 2 of 2 replay slots")
	hides(t, m, "starting")
}

func TestExamplesOfADiffAreLinesOfTheAnswerOnly(t *testing.T) {
	text := "pageviews/v2 is not promoted:\ncheck \"close_to_live\": fail: 976 keys changed\n  [\"/a\"] views 27 → 26"
	d := detail(catchingUpVersion(2), liveVersion(2))
	d.Status.Deployments[0].ExitCode, d.Status.Deployments[0].Message = ptr(5), text
	m := deployment(t, d, Options{})
	shows(t, m, `pageviews/v2 is not promoted: check "close_to_live": fail: 976 keys changed`)
	hides(t, m, "27 → 26")
	asked(t, m, "p", ref)
	m.pressAll(append(strings.Split("pageviews", ""), "enter")...)
	m.Update(acted{generation: m.acts, answer: ledger.Answer{Code: job.ExitChecks, Reason: reason.Refused(text)}})
	shows(t, m, "✗ pageviews/v2 is not promoted:\n", "    [\"/a\"] views 27 → 26\n", "kappactl promote pageviews v2")
}

func TestADeploymentThatStoppedIsSeenInTheOverview(t *testing.T) {
	v := catchingUpVersion(2)
	v.Phase, v.Verdict, v.Reason = job.CaughtUp, job.Ready, ""
	s := detail(v, liveVersion(2)).Status
	s.Deployments[0].ExitCode, s.Deployments[0].Message = ptr(5), "pageviews/v2 is not promoted:\ncheck \"x\": fail"
	m := opened(t, Options{}, 200, 30)
	m.answer(looked{overview: &Overview{Agents: 1, Jobs: []status.Job{s}}})
	shows(t, m, "✗ 1", "✗ stopped: pageviews/v2 is not promoted: check", "v2  ✗ stopped")
}

func TestALongErrorKeepsItsCause(t *testing.T) {
	m := deployment(t, detail(liveVersion(2)), Options{})
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	text := "read status: begin: failed to connect to `user=kappactl database=kappactl`: 127.0.0.1:45081: dial error: connect: connection refused"
	m.take(looked{generation: m.generation, at: m.now, err: errors.New(text)})
	shows(t, m, "▲ the last look failed: …", "connect: connection refused")
	fits(t, m.frame(), 80, 24)
}

func TestRetentionIsShownWhileAVersionIsBehind(t *testing.T) {
	v := catchingUpVersion(2)
	v.RetentionDeadline = ptr(noon().Add(10 * time.Minute))
	m := deployment(t, detail(v, liveVersion(2)), Options{})
	shows(t, m, "RETENTION", "in 10m, at 12:10:00 UTC")
	hides(t, m, "before all of it is read")
	v.ETASeconds = ptr(3600.0)
	m = deployment(t, detail(v, liveVersion(2)), Options{})
	shows(t, m, "before all of it is read")
}
