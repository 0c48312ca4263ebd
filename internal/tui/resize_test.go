package tui

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/status"
)

func TestEverySizeFitsAndComesBack(t *testing.T) {
	sizes := [][2]int{{0, 0}, {1, 1}, {1, 50}, {300, 1}, {20, 5}, {2, 2}, {5, 3}, {47, 24}, {48, 5}, {300, 100}, {80, 24}}
	for i := range 40 {
		sizes = append(sizes, [2]int{73 + i%3, 24})
	}
	for width := range 130 {
		sizes = append(sizes, [2]int{width, 3 + width%40})
	}
	for name, scene := range scenes() {
		m := scene(t, Look{Color: true}, 100, 30)
		before := strings.Join(m.frame(), "\n")
		for _, size := range sizes {
			m.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
			frame := m.frame()
			if t.Run(fmt.Sprintf("%s/%dx%d", name, size[0], size[1]), func(t *testing.T) { fits(t, frame, size[0], size[1]) }); t.Failed() {
				return
			}
		}
		m.Update(tea.WindowSizeMsg{Width: 100, Height: 30})
		if diff := cmp.Diff(before, strings.Join(m.frame(), "\n")); diff != "" {
			t.Errorf("%s is not as before (-before +after):\n%s", name, diff)
		}
	}
}

func TestKeysDuringAStormOfSizes(t *testing.T) {
	r := rand.New(rand.NewSource(1)) //nolint:gosec // repeatable
	keys := []string{"j", "k", "h", "l", "G", "g", "enter", "esc", "e", "/", "x", "backspace", "?", "p", "a", "pgdown", "space", "r", "tab", "f1"}
	d := detail(catchingUpVersion(40), liveVersion(40))
	o := fleet()
	m := opened(t, Options{}, 80, 24)
	for range 5000 {
		m.Update(tea.WindowSizeMsg{Width: r.Intn(220) - 2, Height: r.Intn(70) - 2})
		k := keys[r.Intn(len(keys))]
		m.press(k, textOf(k))
		switch r.Intn(4) {
		case 0:
			m.answer(looked{detail: &d, events: events()})
		case 1:
			m.answer(looked{overview: &o})
		}
		fits(t, m.frame(), m.width, m.height)
		if t.Failed() {
			return
		}
	}
}

func TestTheStateAndTheLagAreTheLastToGo(t *testing.T) {
	m := overview(t)
	for _, width := range []int{60, 80, 120} {
		m.Update(tea.WindowSizeMsg{Width: width, Height: 24})
		shows(t, m, "PHASE", "LAG", "4m10s", "catching up")
	}
	for _, size := range [][2]int{{40, 24}, {40, 10}, {32, 8}} {
		m.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		shows(t, m, "PHASE", "LAG", "2.3M rec", "…")
	}
	m.Update(tea.WindowSizeMsg{Width: 20, Height: 5})
	shows(t, m, "LAG", "…", "◆")
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	shows(t, m, "LIVE", "CAND.", "PHASE", "LAG", "ETA", "VERDICT")
}

// crowds are pages with more, and wider, than anybody planned for.
func crowds() map[string]func(t *testing.T) *Model {
	var versions []status.Version
	for i := 200; i > 0; i-- {
		v := catchingUpVersion(3)
		v.Version, v.CreatedBy, v.GitRevision = fmt.Sprintf("v%d", i), "データ担当者@長い名前のホスト🚀", "👩‍🚀"
		v.Phase = []job.Phase{job.CatchingUp, job.Standby, job.Verified, job.Failed}[i%4]
		v.Partitions[0].Topic = "注文データ🚚配送履歴のとても長いトピック名"
		versions = append(versions, v)
	}
	versions[57] = liveVersion(3)
	versions[57].Version = "v143"
	d := detail(versions...)
	d.Status.Team, d.Status.View = "データ基盤 🚀", "public.\"вид🙈\""
	var o Overview
	for i := range 200 {
		s := d.Status
		s.Versions = versions[55:63]
		s.Job = job.Name(fmt.Sprintf("job_%03d_of_a_team_that_likes_long_names", i))
		o.Jobs = append(o.Jobs, s)
	}
	return map[string]func(t *testing.T) *Model{
		"200 versions": func(t *testing.T) *Model {
			m := opened(t, Options{Job: "pageviews", Look: Look{Color: true}}, 100, 30)
			m.answer(looked{detail: &d})
			m.pressAll("h", "h", "h")
			return m
		},
		"200 jobs": func(t *testing.T) *Model {
			m := opened(t, Options{Look: Look{Color: true}}, 100, 30)
			m.answer(looked{overview: &o})
			m.pressAll("pgdown", "pgdown", "pgdown")
			return m
		},
	}
}

func TestCrowdsFitEverySizeAndComeBack(t *testing.T) {
	for name, scene := range crowds() {
		m := scene(t)
		before := strings.Join(m.frame(), "\n")
		for _, size := range [][2]int{{0, 0}, {1, 1}, {20, 5}, {40, 10}, {73, 24}, {74, 24}, {75, 24}, {74, 24}, {73, 24}, {80, 24}, {300, 100}} {
			m.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
			fits(t, m.frame(), size[0], size[1])
			if text := ansi.Strip(screen(m)); name == "200 jobs" && size[0] >= 20 && size[0] <= 75 && !strings.Contains(text, "…") {
				t.Errorf("%s at %dx%d: clipped without a mark:\n%s", name, size[0], size[1], text)
			}
		}
		m.Update(tea.WindowSizeMsg{Width: 100, Height: 30})
		if diff := cmp.Diff(before, strings.Join(m.frame(), "\n")); diff != "" {
			t.Errorf("%s is not as before (-before +after):\n%s", name, diff)
		}
	}
}

func TestAReasonIsLeftOutWhereOnlyItsFirstLettersFit(t *testing.T) {
	m := overview(t)
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	shows(t, m, "· queued", "▲ unknown", "✗ unhealthy")
	hides(t, m, "queued:…", "unknown:", "unhealthy:")
	m.Update(tea.WindowSizeMsg{Width: 200, Height: 24})
	shows(t, m, "· queued: 2 of 2 replay slots", "✗ unhealthy: gap flights/2")
}

func TestAPartitionKeepsItsNumberWhenItsTopicIsClipped(t *testing.T) {
	v := catchingUpVersion(12)
	for i := range v.Partitions {
		v.Partitions[i].Topic = "a.topic.with.a.name.that.nobody.wants.to.type"
	}
	d := detail(v)
	m := opened(t, Options{Job: "pageviews"}, 80, 24)
	m.answer(looked{detail: &d})
	shows(t, m, "…/11 ", "…/3 ")
}

func TestWideAndHostileNames(t *testing.T) {
	s := liveVersion(2)
	s.CreatedBy, s.GitRevision = "日本語の人@ホスト名がとても長い", "👩‍🚀🚀👨‍👩‍👧‍👦"
	s.Reason = "red \x1b[31m alert \x1b]0;title\x07 \u202egnirts\r\nnext\tline"
	s.Verdict = job.Unhealthy
	s.Partitions[0].Topic = "注文データ🚚配送履歴"
	s.Partitions[1].Topic = "e\u0301\u0301\u0301accents"
	d := detail(s)
	d.Status.Team, d.Status.View = "データ基盤チーム", "public.\"вид🙈\""
	for _, size := range [][2]int{{80, 24}, {121, 40}, {200, 60}, {61, 18}, {33, 9}} {
		m := opened(t, Options{Job: "pageviews", Look: Look{}}, size[0], size[1])
		m.answer(looked{detail: &d})
		fits(t, m.frame(), size[0], size[1])
		for _, r := range screen(m) {
			if r == 0x1b || r == 0x07 || r == '\r' || r == '\t' || r == '\u202e' {
				t.Errorf("%dx%d: control %q reaches the terminal", size[0], size[1], r)
			}
		}
		m.pressAll("e")
		m.answer(looked{detail: &d, events: []Event{{ID: 1, At: noon(), Kind: "🚀\x1b[2J", Version: "v1", By: "人", Message: strings.Repeat("🙈日", 200)}}})
		fits(t, m.frame(), size[0], size[1])
		if strings.ContainsRune(screen(m), 0x1b) {
			t.Error("an escape of an event reaches the terminal")
		}
	}
}

func TestColumnsStayAlignedUnderWideCells(t *testing.T) {
	m := overview(t)
	m.Update(tea.WindowSizeMsg{Width: 200, Height: 30})
	at := -1
	for _, l := range m.frame() {
		plain := ansi.Strip(l)
		i := strings.Index(plain, "● live")
		if i < 0 || !strings.Contains(plain, "v1") {
			continue
		}
		if col := cells(plain[:i]); at >= 0 && col != at {
			t.Errorf("phase at column %d, before at %d: %s", col, at, plain)
		} else {
			at = col
		}
	}
	if at < 0 {
		t.Error("no row found: this test checks nothing")
	}
}
