package render

// Style tells which reader the text is for. The zero Style is for programs.
type Style struct {
	People bool // aligned columns; otherwise tab-separated
	Color  bool // ANSI colours
	Width  int  // columns of the terminal, 0 = unknown; tables are fitted to it
}

// Tone is the meaning of a text that its colour expresses.
type Tone int

// The tones.
const (
	Plain Tone = iota
	Good
	Warn
	Bad
	Dim
	Strong
)

const reset = "\x1b[0m"

func (t Tone) code() string {
	switch t {
	case Good:
		return "\x1b[32m"
	case Warn:
		return "\x1b[33m"
	case Bad:
		return "\x1b[31m"
	case Dim:
		return "\x1b[2m"
	case Strong:
		return "\x1b[1m"
	case Plain:
	}
	return ""
}

// Paint colours text by its tone if the style has colours.
func (s Style) Paint(tone Tone, text string) string {
	if code := tone.code(); s.Color && code != "" && text != "" {
		return code + text + reset
	}
	return text
}
