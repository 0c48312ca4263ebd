package render

// Style says whom the text is for. The zero Style is for scripts.
type Style struct {
	People bool // aligned columns; otherwise tab-separated
	Color  bool // ANSI colours
	Width  int  // columns of the terminal, 0 = unknown; the last column of a table is cut to it
}

// Tone is what a text means, apart from its words.
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

// Paint puts s in the colour of tone, when the style has colours.
func (s Style) Paint(tone Tone, text string) string {
	if code := tone.code(); s.Color && code != "" && text != "" {
		return code + text + reset
	}
	return text
}
