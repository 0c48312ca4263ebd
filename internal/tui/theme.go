package tui

import (
	"io"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"
)

// tone is the meaning of a text, apart from its words. Nothing is said by colour alone.
type tone int

const (
	plain     tone = iota
	dim            // labels, what matters less
	strong         // names, titles
	live           // what readers see, and what is well
	candidate      // what is on its way to them
	standby        // what they could go back to
	warn           // wants a look
	bad            // wants an act
	tones
)

// glyphs are the signs of the interface; every one is one cell wide.
type glyphs struct {
	live, candidate, standby, ended, warn, bad, good, none string
	here, rule, mark, dot, up, down, dash                  string
	heights                                                []string // from empty to full, bottom to top
	block, line                                            pen
	cursor                                                 string
}

// theme holds the colours and signs of the interface.
type theme struct {
	glyphs
	styles [tones]lipgloss.Style
	color  bool
}

// Look describes what the terminal can show.
type Look struct {
	Color bool // colours may be used
	// Depth is how many colours there are; the zero value is all.
	Depth termenv.Profile
	Light bool // on a light background
	ASCII bool // only ASCII can be shown
}

func newTheme(l Look) theme {
	t := theme{glyphs: unicodeGlyphs(), color: l.Color}
	if l.ASCII {
		t.glyphs = asciiGlyphs()
	}
	r := lipgloss.NewRenderer(io.Discard) // and not the one of the package, which would ask the terminal
	r.SetColorProfile(l.Depth)
	r.SetHasDarkBackground(!l.Light)
	fg := func(light, dark string) lipgloss.Style {
		return r.NewStyle().Foreground(lipgloss.AdaptiveColor{Light: light, Dark: dark})
	}
	t.styles = [tones]lipgloss.Style{
		plain:     r.NewStyle(),
		dim:       fg("#6C6C6C", "#8A8A8A"),
		strong:    r.NewStyle().Bold(true),
		live:      fg("#1A7F37", "#7FC98B"),
		candidate: fg("#0B62C4", "#7AB2F4"),
		standby:   fg("#6B5B95", "#A79CC9"),
		warn:      fg("#9A6700", "#E3B458"),
		bad:       fg("#C0262D", "#F0817F"),
	}
	return t
}

// paint gives text a tone.
func (t theme) paint(as tone, text string) string {
	if !t.color || as == plain || text == "" {
		return text
	}
	return t.styles[as].Render(text)
}

func unicodeGlyphs() glyphs {
	return glyphs{
		live: "●", candidate: "◆", standby: "○", ended: "·", warn: "▲", bad: "✗", good: "✓", none: "–",
		here: "▸", rule: "─", mark: "…", dot: "·", up: "↑", down: "↓", dash: "–",
		block:   pen{[]string{" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"}, "░"},
		line:    pen{[]string{" ", "╸", "━"}, "─"},
		heights: []string{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"},
		cursor:  "█",
	}
}

func asciiGlyphs() glyphs {
	return glyphs{
		live: "*", candidate: "+", standby: "o", ended: ".", warn: "!", bad: "x", good: "v", none: "-",
		here: ">", rule: "-", mark: "~", dot: "|", up: "^", down: "v", dash: "-",
		block:   pen{[]string{" ", "#"}, "."},
		line:    pen{[]string{" ", "="}, "."},
		heights: []string{" ", ".", ":", "-", "=", "+", "*", "#"},
		cursor:  "_",
	}
}
