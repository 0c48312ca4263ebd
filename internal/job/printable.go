package job

import (
	"strings"
	"unicode"
)

// Steers reports whether a terminal may take a character for a command: C0 and C1 controls but line feed and tab, line
// and paragraph separators, and the controls that change the direction of text. Records, messages of servers and names
// may hold any of them.
func Steers(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' ||
		unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) || unicode.Is(unicode.Bidi_Control, r)
}

// Printable is text that is safe to print on a terminal: each character that could steer it is replaced by a middle
// dot.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if Steers(r) {
			return '·'
		}
		return r
	}, text)
}
