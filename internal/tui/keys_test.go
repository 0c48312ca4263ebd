package tui

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/status"
)

// overview is the page of all jobs, answered.
func overview(t *testing.T) *Model {
	t.Helper()
	m := opened(t, Options{}, 120, 30)
	o := fleet()
	m.answer(looked{overview: &o})
	return m
}

// deployment is the page of pageviews, answered.
func deployment(t *testing.T, d Detail, o Options) *Model {
	t.Helper()
	o.Job = "pageviews"
	m := opened(t, o, 120, 30)
	m.answer(looked{detail: &d})
	return m
}

func screen(m *Model) string { return strings.Join(m.frame(), "\n") }

func shows(t *testing.T, m *Model, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(screen(m), w) {
			t.Errorf("the screen does not show %q:\n%s", w, screen(m))
		}
	}
}

func hides(t *testing.T, m *Model, words ...string) {
	t.Helper()
	for _, w := range words {
		if strings.Contains(screen(m), w) {
			t.Errorf("the screen shows %q:\n%s", w, screen(m))
		}
	}
}

func TestSelectionMovesAndStaysInTheList(t *testing.T) {
	m := overview(t)
	for _, c := range []struct {
		key  string
		want job.Name
	}{
		{"down", "flights"},
		{"j", "orders"},
		{"k", "flights"},
		{"up", "clicks"},
		{"up", "clicks"},
		{"G", "signups_by_country_and_campaign"},
		{"j", "signups_by_country_and_campaign"},
		{"g", "clicks"},
		{"pgdown", "signups_by_country_and_campaign"},
		{"ctrl+u", "clicks"},
	} {
		if m.press(c.key, textOf(c.key)); m.selected != c.want {
			t.Errorf("%s selects %s, want %s", c.key, m.selected, c.want)
		}
	}
}

func TestSelectionFollowsItsJobWhenTheListChanges(t *testing.T) {
	m := overview(t)
	m.pressAll("j", "j")
	o := fleet()
	o.Jobs = slices.Delete(o.Jobs, 0, 1)
	m.answer(looked{overview: &o})
	if m.selected != "orders" {
		t.Errorf("selected is %s, want orders", m.selected)
	}
	o.Jobs = slices.Delete(o.Jobs, 1, 2)
	m.answer(looked{overview: &o})
	if m.selected != "flights" {
		t.Errorf("selected is %s, want the first", m.selected)
	}
}

func TestEnterOpensAJobAndEscGoesBackToIt(t *testing.T) {
	m := overview(t)
	m.pressAll("j", "j")
	if cmd := m.press("enter", ""); cmd == nil || m.page != pageDeployment || m.job != "orders" {
		t.Fatalf("on %s of %s", m.page, m.job)
	}
	shows(t, m, "orders", "asking")
	m.pressAll("e")
	if m.page != pageEvents {
		t.Fatalf("on %s", m.page)
	}
	if m.pressAll("esc"); m.page != pageDeployment {
		t.Fatalf("on %s", m.page)
	}
	if m.pressAll("esc"); m.page != pageOverview || m.selected != "orders" {
		t.Fatalf("on %s with %s selected", m.page, m.selected)
	}
}

func TestRepliesOfAnEarlierPageAreDropped(t *testing.T) {
	m := overview(t)
	late := looked{generation: m.generation, at: m.now, err: errors.New("too late")}
	m.pressAll("enter")
	m.Update(late)
	if m.failure != nil || m.asked.IsZero() {
		t.Errorf("a late reply was taken: %v", m.failure)
	}
	d := detail(liveVersion(1))
	late = looked{generation: m.generation, at: m.now, detail: &d}
	m.pressAll("esc", "j", "enter")
	if m.Update(late); m.detail != nil {
		t.Errorf("the page of %s shows %s", m.job, m.detail.Status.Job)
	}
}

func TestOneLookIsOutAtATime(t *testing.T) {
	m := opened(t, Options{}, 80, 24)
	if m.askAgain() != nil {
		t.Error("asked twice")
	}
	m.now = m.now.Add(2 * lookPatience)
	if m.askAgain() == nil {
		t.Error("a look that never came back is waited for for ever")
	}
	o := fleet()
	m.answer(looked{overview: &o})
	if m.askAgain() == nil {
		t.Error("not asked again after an answer")
	}
}

func TestFilterNarrowsTheListUntilItIsCleared(t *testing.T) {
	m := overview(t)
	m.pressAll("/", "p", "a", "u", "s", "e")
	if jobs := m.jobs(); len(jobs) != 1 || jobs[0].Job != "sessions" || m.selected != "sessions" {
		t.Errorf("%d jobs, selected %s", len(jobs), m.selected)
	}
	shows(t, m, "/pause", "sessions")
	hides(t, m, "orders")
	m.pressAll("backspace", "backspace", "enter")
	if m.typing || len(m.jobs()) == 0 {
		t.Error("the filter is not kept")
	}
	m.pressAll("esc")
	if len(m.jobs()) != 6 {
		t.Errorf("%d jobs after esc", len(m.jobs()))
	}
	m.pressAll("/", "q", "?", "p")
	if m.exit != exitNone || m.help || m.confirm != nil || m.filters[pageOverview].text != "q?p" {
		t.Error("keys typed into the filter did something else")
	}
	shows(t, m, "none of 6 jobs matches")
	if m.pressAll("enter", "enter", "p", "e"); m.page != pageOverview || m.confirm != nil {
		t.Error("a key acted on a job that is not shown")
	}
}

func TestFilterOfPartitionsAndEvents(t *testing.T) {
	m := deployment(t, detail(catchingUpVersion(12), liveVersion(12)), Options{})
	m.pressAll("/", "c", "o", "n", "v", "enter")
	if parts := m.shownPartitions(*m.focused()); len(parts) != 1 || parts[0].Partition != 3 {
		t.Errorf("partitions %v", parts)
	}
	m.pressAll("esc", "e")
	d := detail(liveVersion(1))
	m.answer(looked{detail: &d, events: events()})
	m.pressAll("/", "v", "1", "enter")
	if len(m.shownEvents()) != 3 {
		t.Errorf("%d events", len(m.shownEvents()))
	}
}

func TestScrollingStopsAtTheEnds(t *testing.T) {
	m := deployment(t, detail(catchingUpVersion(64), liveVersion(64)), Options{})
	shows(t, m, "pageviews/3 ", "1–")
	m.pressAll("G")
	shows(t, m, "/64")
	last := screen(m)
	m.pressAll("j", "j")
	if screen(m) != last {
		t.Error("scrolled past the end")
	}
	m.pressAll("g", "k")
	shows(t, m, "1–", "pageviews/3 ")
}

func TestScrollingBackFromTheEndMovesAtOnce(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 30}, {200, 60}} {
		m := opened(t, Options{Job: "pageviews"}, size[0], size[1])
		d := detail(catchingUpVersion(64), liveVersion(64))
		m.answer(looked{detail: &d})
		m.pressAll("G")
		last := screen(m)
		if m.pressAll("k"); screen(m) == last {
			t.Errorf("%dx%d: k after G moves nothing", size[0], size[1])
		}
		m.pressAll("G")
		m.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1] + 8})
		last = screen(m)
		if m.pressAll("k"); screen(m) == last {
			t.Errorf("%dx%d: k moves nothing in a window that became higher", size[0], size[1])
		}
	}
}

func TestTheSelectedEventStaysWhenNewOnesCome(t *testing.T) {
	d := detail(liveVersion(1))
	m := deployment(t, d, Options{})
	m.pressAll("e")
	m.answer(looked{detail: &d, events: events()})
	newer := append([]Event{{ID: 10, At: noon(), Version: "v2", Kind: "phase", Message: "catching_up → caught_up"}}, events()...)
	m.answer(looked{detail: &d, events: newer})
	if m.scroll != 0 {
		t.Errorf("the newest event is not selected any more: %d", m.scroll)
	}
	m.pressAll("j", "j")
	m.answer(looked{detail: &d, events: append([]Event{{ID: 11, At: noon(), Kind: "phase"}, {ID: 12, At: noon(), Kind: "phase"}}, newer...)})
	if got := m.shownEvents()[m.scroll].ID; got != 8 {
		t.Errorf("event %d is selected, want 8", got)
	}
}

func TestTheFooterOffersWhatCanBeDone(t *testing.T) {
	standby := liveVersion(1)
	standby.Version, standby.Phase = "v0", job.Standby
	replaying, verified := replayingVersion(1), replayingVersion(1)
	verified.Phase = job.Verified
	paused := replayingVersion(1)
	paused.Paused = true
	for name, c := range map[string]struct {
		versions []status.Version
		want     string
	}{
		"live alone": {[]status.Version{liveVersion(1)}, ""},
		"replaying":  {[]status.Version{replaying, liveVersion(1)}, "space pause, a abort"},
		"paused":     {[]status.Version{paused, liveVersion(1)}, "space resume, a abort"},
		"verified":   {[]status.Version{verified, liveVersion(1)}, "p promote, space pause, a abort"},
		"standby":    {[]status.Version{liveVersion(1), standby}, "r rollback"},
	} {
		m := deployment(t, detail(c.versions...), Options{})
		if got := strings.Join(m.actHints(), ", "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	m := deployment(t, detail(verified, liveVersion(1)), Options{})
	if m.pressAll("l"); len(m.actHints()) != 0 {
		t.Errorf("live was chosen, and %q is offered", m.actHints())
	}
}

func TestVersionsAreChosenLeftAndRight(t *testing.T) {
	var versions []status.Version
	for i := 200; i > 0; i-- {
		v := version(fmt.Sprintf("v%d", i), job.Retired, job.Unknown, "the version has ended")
		if i == 199 {
			v = liveVersion(2)
			v.Version = "v199"
		}
		versions = append(versions, v)
	}
	d := detail(versions...)
	d.Status.Deployments = nil
	m := deployment(t, d, Options{})
	if m.focused().Version != "v199" {
		t.Fatalf("begins with %s", m.focused().Version)
	}
	m.pressAll("l")
	shows(t, m, "v199 live", "v198 retired")
	m.pressAll("h", "h", "h")
	if m.focused().Version != "v1" {
		t.Errorf("%s: the choice does not go round", m.focused().Version)
	}
	for _, size := range [][2]int{{80, 24}, {200, 60}, {20, 5}} {
		m.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		fits(t, m.frame(), size[0], size[1])
	}
}

func TestHelpListsTheKeysAndAnyKeyLeavesIt(t *testing.T) {
	m := overview(t)
	m.pressAll("?")
	shows(t, m, "promote", "roll back", "filter", "esc back")
	if m.pressAll("q"); m.help || m.exit != exitNone {
		t.Error("q in the help left the program")
	}
}

func TestTheDocsListTheKeysOfTheHelp(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "watch.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range bindings(false) {
		if row := fmt.Sprintf("| %s | %s |\n", b.Help().Key, b.Help().Desc); !strings.Contains(string(text), row) {
			t.Errorf("docs/watch.md lacks %s", row)
		}
	}
}

func TestEveryVerdictHasAMeaning(t *testing.T) {
	m := opened(t, Options{}, 120, 40)
	m.pressAll("?")
	for _, v := range job.Verdicts() {
		if meaning(v) == "" {
			t.Errorf("%s has no meaning", v)
		}
		shows(t, m, verdictWords(v), meaning(v))
	}
}

func TestReadOnlyHasNoActs(t *testing.T) {
	m := deployment(t, detail(catchingUpVersion(2), liveVersion(2)), Options{ReadOnly: true})
	hides(t, m, "promote", "roll back", "pause", "abort")
	m.pressAll("p", "r", "a", "space")
	if m.confirm != nil {
		t.Error("an act began")
	}
	m.pressAll("?")
	hides(t, m, "promote", "roll back", "pause", "abort", "Acts ask")
}

func TestLeaving(t *testing.T) {
	for key, want := range map[string]exit{"q": exitQuit, "ctrl+c": exitInterrupted} {
		m := overview(t)
		if cmd := m.press(key, textOf(key)); cmd == nil || m.exit != want {
			t.Errorf("%s: exit %q", key, m.exit)
		}
	}
	m := overview(t)
	m.pressAll("/")
	if m.press("ctrl+c", ""); m.exit != exitInterrupted {
		t.Error("ctrl-c does not leave the filter")
	}
}

func TestStaleDataShowsItsAgeUntilItIsFresh(t *testing.T) {
	m := deployment(t, detail(catchingUpVersion(2), liveVersion(2)), Options{})
	hides(t, m, "reconnecting")
	m.now = m.now.Add(12 * time.Second)
	m.take(looked{generation: m.generation, at: m.now, err: errors.New("PostgreSQL at 127.0.0.1:5432: connection refused")})
	shows(t, m, "data of 12s ago, reconnecting", "connection refused", "v2 candidate")
	if m.askAgain() == nil {
		t.Error("does not reconnect")
	}
	d := detail(catchingUpVersion(2), liveVersion(2))
	m.answer(looked{detail: &d})
	hides(t, m, "reconnecting", "refused")
}

func TestAJobThatDoesNotExistEndsTheProgram(t *testing.T) {
	m := opened(t, Options{Job: "nope"}, 80, 24)
	m.take(looked{generation: m.generation, at: m.now, err: &job.Refusal{Code: job.ExitUsage, Cause: "no job nope"}})
	if m.exit != exitUnknownJob {
		t.Errorf("exit %q", m.exit)
	}
}
