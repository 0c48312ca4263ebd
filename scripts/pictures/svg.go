package main

import (
	"fmt"
	"html"
	"image/color"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
)

// The size of a cell, and of the window around the cells, in pixels.
const (
	cellWidth  = 8.4
	cellHeight = 18.0
	fontSize   = 14.0
	margin     = 16.0
	bar        = 34.0 // with the title and three dots
)

const (
	paper = "#12151c"
	ink   = "#d6dae2"
)

// screen is the content of a terminal.
type screen struct {
	width, height int
	at            func(x, y int) *uv.Cell
}

// svg draws a screen in a window. Text is text, as wide as its cells in every font; what terminals draw as blocks and
// lines is drawn as shapes, which meet without gaps.
func svg(s screen, title, about string) string {
	width, height := float64(s.width)*cellWidth+2*margin, float64(s.height)*cellHeight+margin+bar
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" width="%s" height="%s" role="img" aria-label="%s">`+"\n",
		px(width), px(height), px(width), px(height), html.EscapeString(about))
	fmt.Fprintf(&b, "<title>%s</title>\n", html.EscapeString(about))
	fmt.Fprintf(&b, `<rect width="%s" height="%s" rx="9" fill="%s"/>`+"\n", px(width), px(height), paper)
	for i, dot := range []string{"#ec6a5e", "#f4bf4f", "#61c554"} {
		fmt.Fprintf(&b, `<circle cx="%d" cy="17" r="5.5" fill="%s"/>`+"\n", 20+i*20, dot)
	}
	fmt.Fprintf(&b, `<text x="%s" y="21.5" fill="#8a92a0" font-family="system-ui, sans-serif" font-size="12.5" text-anchor="middle">%s</text>`+"\n",
		px(width/2), html.EscapeString(title))
	fmt.Fprintf(&b, `<g font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace" font-size="%s" fill="%s" xml:space="preserve">`+"\n", px(fontSize), ink)
	for y := range s.height {
		for _, r := range spans(s, y) {
			r.draw(&b, y)
		}
	}
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}

// span is neighbouring cells that look alike.
type span struct {
	x, cells int
	text     string
	style    uv.Style
	shape    bool // one block or line character, again and again
}

func spans(s screen, y int) []span {
	var out []span
	for x := 0; x < s.width; x++ {
		c := s.at(x, y)
		if c == nil || c.Width == 0 {
			continue
		}
		_, shape := shapes()[c.Content]
		if last := len(out) - 1; last >= 0 && out[last].takes(c, x, shape) {
			out[last].text += c.Content
			out[last].cells += c.Width
			continue
		}
		out = append(out, span{x: x, cells: c.Width, text: c.Content, style: c.Style, shape: shape})
	}
	return out
}

func (r span) takes(c *uv.Cell, x int, shape bool) bool {
	if r.x+r.cells != x || r.shape != shape || !r.style.Equal(&c.Style) {
		return false
	}
	if shape {
		return strings.HasPrefix(r.text, c.Content)
	}
	return strings.TrimSpace(r.text) == "" == (strings.TrimSpace(c.Content) == "") || !strings.HasSuffix(r.text, " ")
}

func (r span) draw(b *strings.Builder, y int) {
	if strings.TrimSpace(r.text) == "" {
		return
	}
	x, top := margin+float64(r.x)*cellWidth, bar+float64(y)*cellHeight
	width := float64(r.cells) * cellWidth
	if r.shape {
		first := r.text[:len(r.text)/r.cells]
		s := shapes()[first]
		if s.width < 1 {
			width *= s.width
		}
		opacity := ""
		if s.opacity > 0 {
			opacity = fmt.Sprintf(` opacity="%s"`, px(s.opacity))
		}
		fmt.Fprintf(b, `<rect x="%s" y="%s" width="%s" height="%s" fill="%s"%s/>`+"\n",
			px(x), px(top+s.top*cellHeight), px(width), px(s.height*cellHeight), hex(r.style.Fg), opacity)
		return
	}
	text := strings.TrimRight(r.text, " ")
	width -= float64(len(r.text)-len(text)) * cellWidth
	look := ""
	if r.style.Fg != nil {
		look += fmt.Sprintf(` fill="%s"`, hex(r.style.Fg))
	}
	if r.style.Attrs&uv.AttrBold != 0 {
		look += ` font-weight="700"`
	}
	fmt.Fprintf(b, `<text x="%s" y="%s" textLength="%s" lengthAdjust="spacingAndGlyphs"%s>%s</text>`+"\n",
		px(x), px(top+cellHeight*0.74), px(width), look, html.EscapeString(text))
}

// shape is the part of a cell that a character fills, in shares of the cell.
type shape struct{ top, width, height, opacity float64 }

// shapes are the characters that are drawn: eighths from below and from the left, and lines.
func shapes() map[string]shape {
	out := map[string]shape{
		"█": {0, 1, 1, 0}, "░": {0, 1, 1, 0.25}, "─": {0.48, 1, 0.06, 0.6}, "━": {0.4, 1, 0.22, 0}, "╸": {0.4, 0.5, 0.22, 0},
	}
	for i, c := range []string{"▁", "▂", "▃", "▄", "▅", "▆", "▇"} {
		share := float64(i+1) / 8
		out[c] = shape{1 - share, 1, share, 0}
	}
	for i, c := range []string{"▏", "▎", "▍", "▌", "▋", "▊", "▉"} {
		out[c] = shape{0, float64(i+1) / 8, 1, 0}
	}
	return out
}

// palette is the colours that programs name by number, as a terminal on this paper has them.
func palette() [8]string {
	return [8]string{paper, "#f0817f", "#7fc98b", "#e3b458", "#7ab2f4", "#a79cc9", "#6cc5c9", ink}
}

func hex(c color.Color) string {
	if c == nil {
		return ink
	}
	if numbered, is := c.(ansi.BasicColor); is {
		return palette()[numbered%8]
	}
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
}

// px prints a length without needless digits.
func px(v float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", v), "0"), ".")
}
