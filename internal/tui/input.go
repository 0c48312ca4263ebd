package tui

import (
	"strconv"
	"strings"

	tea "github.com/charmbracelet/bubbletea"
)

// key takes what the terminal sent as keys: a key, a paste, several characters that were read at once, or a piece of
// the terminal's answer about its background.
func (m *Model) key(msg tea.KeyMsg) tea.Cmd {
	text := string(msg.Runes)
	switch {
	case msg.Paste:
		m.paste(text)
		return nil
	case m.answered(msg):
		return nil
	case msg.Type == tea.KeySpace && !msg.Alt:
		return m.press("space", " ")
	case msg.Type == tea.KeyEscape && msg.Alt: // esc twice, read at once
		return tea.Batch(m.press("esc", ""), m.press("esc", ""))
	case msg.Type != tea.KeyRunes || msg.Alt:
		return m.press(msg.String(), "")
	}
	var cmds []tea.Cmd
	for i, r := range msg.Runes {
		if m.typing || m.confirm != nil && m.confirm.stage == stageTyping {
			rest := string(msg.Runes[i:])
			return tea.Batch(append(cmds, m.press(rest, rest))...)
		}
		cmds = append(cmds, m.press(string(r), string(r)))
	}
	return tea.Batch(cmds...)
}

// askBackground is the question (OSC 11); a terminal that does not know it is silent.
func (c commands) askBackground() tea.Cmd {
	return func() tea.Msg {
		_, _ = c.out.Write([]byte("\x1b]11;?\x1b\\")) // a terminal that is gone ends the program by itself
		return nil
	}
}

// answered takes the answer, which comes as if it were typed: alt+], the colour as characters, and alt+\ or ctrl+g. It
// may come late and in pieces. Whatever is not it is a key again.
func (m *Model) answered(msg tea.KeyMsg) bool {
	name := msg.String()
	switch {
	case name == "alt+]":
		m.reply = new(string)
		return true
	case m.reply == nil:
		return false
	case msg.Type == tea.KeyRunes && !msg.Alt && pieceOfAnswer(*m.reply+string(msg.Runes)):
		*m.reply += string(msg.Runes)
		return true
	}
	light, known := lightColour(*m.reply)
	m.reply = nil
	if known {
		m.look.Light = light
		m.theme = newTheme(m.look)
	}
	return name == "alt+\\" || name == "ctrl+g"
}

const answerBegins = "11;rgb:"

func pieceOfAnswer(s string) bool {
	if len(s) <= len(answerBegins) {
		return strings.HasPrefix(answerBegins, s)
	}
	return strings.HasPrefix(s, answerBegins) && strings.Trim(s[len(answerBegins):], "0123456789abcdefABCDEF/") == ""
}

// lightColour reads an answer such as 11;rgb:1e1e/1e1e/1e1e, whose parts have one to four digits.
func lightColour(answer string) (light, known bool) {
	parts := strings.Split(strings.TrimPrefix(answer, answerBegins), "/")
	if len(parts) != 3 {
		return false, false
	}
	var share [3]float64
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 16, 16)
		if err != nil {
			return false, false
		}
		share[i] = float64(n) / float64(uint64(1)<<(4*len(p))-1)
	}
	lightness := (max(share[0], share[1], share[2]) + min(share[0], share[1], share[2])) / 2
	return lightness >= 0.5, true
}
