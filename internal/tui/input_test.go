package tui

import (
	"bytes"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/muesli/termenv"
)

// typed sends text as the library does when several characters are read at once.
func typed(m *Model, text string) tea.Cmd {
	_, cmd := m.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(text)})
	return cmd
}

func alt(m *Model, r rune) { m.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}, Alt: true}) }

func TestKeysReadAtOnceAreKeysOneByOne(t *testing.T) {
	m := overview(t)
	if typed(m, "jj"); m.selected != "orders" {
		t.Errorf("selected is %s", m.selected)
	}
	if typed(m, "/sta"); !m.typing || m.filters[pageOverview].text != "sta" {
		t.Errorf("filter %q", m.filters[pageOverview].text)
	}
	m.Update(tea.KeyMsg{Type: tea.KeySpace, Runes: []rune{' '}})
	typed(m, "日e\u0301")
	if text := m.filters[pageOverview].text; text != "sta 日e\u0301" {
		t.Errorf("filter %q", text)
	}
	m.Update(tea.KeyMsg{Type: tea.KeyEsc})
	m = deployment(t, detail(catchingUpVersion(2), liveVersion(2)), Options{})
	typed(m, "lap")
	if m.confirm == nil || m.confirm.typed.text != "p" {
		t.Errorf("confirmation %+v", m.confirm)
	}
}

func TestEscTwiceAtOnceIsTwoKeys(t *testing.T) {
	m := overview(t)
	m.pressAll("/", "o", "enter", "enter")
	if m.page != pageDeployment {
		t.Fatalf("on %s", m.page)
	}
	m.Update(tea.KeyMsg{Type: tea.KeyEscape, Alt: true})
	if m.page != pageOverview || m.filters[pageOverview].text != "" {
		t.Errorf("on %s with the filter %q", m.page, m.filters[pageOverview].text)
	}
}

func TestAPasteIsTextAndNeverKeys(t *testing.T) {
	m := overview(t)
	m.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("q?"), Paste: true})
	if m.exit != exitNone || m.help {
		t.Error("a paste pressed keys")
	}
	typed(m, "/")
	m.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("or\nders\x1b"), Paste: true})
	if text := m.filters[pageOverview].text; text != "or ders" {
		t.Errorf("filter %q", text)
	}
}

func TestTheTerminalsAnswerSetsTheThemeAndPressesNothing(t *testing.T) {
	for _, c := range []struct {
		pieces []string
		end    tea.KeyMsg
		light  bool
	}{
		{[]string{"11;rgb:ffff/ffff/f0f0"}, tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{'\\'}, Alt: true}, true},
		{[]string{"11;rgb:1e1e/1e1e/1e1e"}, tea.KeyMsg{Type: tea.KeyCtrlG}, false},
		{[]string{"1", "1;rg", "b:ee/e", "e/ee"}, tea.KeyMsg{Type: tea.KeyCtrlG}, true},
		{[]string{"11;rgb:nonsense"}, tea.KeyMsg{Type: tea.KeyCtrlG}, false},
		{[]string{"11;rgb:ff/ff"}, tea.KeyMsg{Type: tea.KeyCtrlG}, false},
		{[]string{"11;rgb:ff//ff"}, tea.KeyMsg{Type: tea.KeyCtrlG}, false},
	} {
		m := opened(t, Options{Look: Look{Color: true}}, 80, 24)
		o := fleet()
		m.answer(looked{overview: &o})
		alt(m, ']')
		for _, p := range c.pieces {
			if c.pieces[0] == "11;rgb:nonsense" && m.reply == nil {
				t.Error("nothing is read as an answer")
			}
			typed(m, p)
		}
		m.Update(c.end)
		if m.look.Light != c.light || m.exit != exitNone {
			t.Errorf("%q: light %t, exit %q", c.pieces, m.look.Light, m.exit)
		}
		if c.pieces[0] != "11;rgb:nonsense" && (m.confirm != nil || m.page != pageOverview) {
			t.Errorf("%q pressed keys", c.pieces)
		}
		if typed(m, "j"); m.selected != "flights" && c.pieces[0] != "11;rgb:nonsense" {
			t.Errorf("%q: keys do nothing afterwards", c.pieces)
		}
	}
}

func TestTheTerminalIsAskedOnlyForColour(t *testing.T) {
	var out bytes.Buffer
	c := commands{ctx: t.Context(), src: nowhere{}, out: &out, now: noon}
	c.askBackground()()
	if out.String() != "\x1b]11;?\x1b\\" {
		t.Errorf("asks %q", out.String())
	}
}

func TestFewColoursAreEnough(t *testing.T) {
	for depth, want := range map[termenv.Profile]string{termenv.TrueColor: "\x1b[38;2;", termenv.ANSI256: "\x1b[38;5;", termenv.ANSI: "\x1b[9"} {
		got := newTheme(Look{Color: true, Depth: depth}).paint(bad, "x")
		if len(got) < len(want) || got[:len(want)] != want {
			t.Errorf("depth %d paints %q", depth, got)
		}
	}
}
