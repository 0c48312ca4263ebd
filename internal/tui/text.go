package tui

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"github.com/kappactl/kappactl/internal/job"
)

// clean keeps a text on one line and the terminal safe from what came from elsewhere.
func clean(s string) string {
	s = strings.Join(strings.Fields(strings.Map(safe, s)), " ")
	if alone(s) {
		return s
	}
	// A character at an edge joins its neighbour, and columns go wrong.
	s = strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII {
			return '?'
		}
		return r
	}, s)
	return s
}

// safe replaces what steers a terminal, and what no encoding holds.
func safe(r rune) rune {
	if job.Steers(r) || r == unicode.ReplacementChar {
		return ' '
	}
	return r
}

// alone reports whether a text is as wide beside others as by itself.
func alone(s string) bool {
	return cells(" "+s+" ") == cells(s)+2 && cells("…"+s+"…") == cells(s)+2
}

// cells is the width of a text on the screen.
func cells(s string) int { return ansi.StringWidth(s) }

// clip cuts a text to width and marks the cut.
func (t theme) clip(s string, width int) string {
	if width <= 0 {
		return ""
	}
	if cells(s) <= width {
		return s
	}
	return ansi.Truncate(s, width, t.mark)
}

// fit makes a text exactly width wide.
func (t theme) fit(s string, width int, right bool) string {
	s = t.clip(s, width)
	pad := strings.Repeat(" ", max(0, width-cells(s)))
	if right {
		return pad + s
	}
	return s + pad
}

// ends puts left at the left and right at the right edge; when they do not fit, right gives way.
func (t theme) ends(left, right string, width int) string {
	room := width - cells(left) - 2
	if right == "" || room < cells(right) {
		if room < 8 || right == "" {
			return t.clip(left, width)
		}
		right = t.clip(right, room)
	}
	return left + strings.Repeat(" ", max(0, width-cells(left)-cells(right))) + right
}

// wrap breaks words into at most lines lines of width; the last one is clipped.
func (t theme) wrap(s string, width, lines int) []string {
	if width <= 0 || lines <= 0 {
		return nil
	}
	var out []string
	words := strings.Fields(s)
	for len(words) > 0 {
		if len(out) == lines-1 {
			return append(out, t.clip(strings.Join(words, " "), width))
		}
		n := 1
		for n < len(words) && cells(strings.Join(words[:n+1], " ")) <= width {
			n++
		}
		out = append(out, t.clip(strings.Join(words[:n], " "), width))
		words = words[n:]
	}
	return out
}
