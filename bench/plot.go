package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// The look of the plots, which is that of the other pictures in docs/images.
const (
	paper  = "#12151c"
	ink    = "#d6dae2"
	muted  = "#8a92a0"
	strong = "#61c554"
	plain  = "#5b8def"
)

// bar is one row of a bar chart.
type bar struct {
	label, note string
	value       float64
	ours        bool
}

// drawing writes an SVG.
type drawing struct {
	strings.Builder
}

func (d *drawing) add(format string, args ...any) {
	fmt.Fprintf(&d.Builder, format, args...)
}

func (d *drawing) begin(width, height int, title string) {
	title = html.EscapeString(title)
	d.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s" font-family="system-ui, sans-serif" font-size="13">`+"\n",
		width, height, width, height, title)
	d.add("<title>%s</title>\n<rect width=\"%d\" height=\"%d\" rx=\"9\" fill=\"%s\"/>\n", title, width, height, paper)
	d.text(20, 28, "start", ink, title)
}

func (d *drawing) text(x, y float64, anchor, color, escaped string) {
	d.add(`<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s">%s</text>`+"\n", x, y, anchor, color, escaped)
}

func (d *drawing) end() string {
	d.WriteString("</svg>\n")
	return d.String()
}

// barChart draws bars from the left, each with its note behind it.
func barChart(title string, bars []bar) string {
	const width, left, right, row = 940, 420, 150, 30
	most := 0.0
	for _, b := range bars {
		most = math.Max(most, b.value)
	}
	var d drawing
	d.begin(width, 60+row*len(bars), title)
	for i, b := range bars {
		y := float64(48 + i*row)
		length := 0.0
		if most > 0 {
			length = b.value / most * (width - left - right)
		}
		color := plain
		if b.ours {
			color = strong
		}
		d.text(left-10, y+14, "end", ink, html.EscapeString(b.label))
		d.add(`<rect x="%d" y="%.1f" width="%.1f" height="18" rx="3" fill="%s"/>`+"\n", left, y, math.Max(length, 1), color)
		d.text(left+length+8, y+14, "start", muted, html.EscapeString(b.note))
	}
	return d.end()
}

// point is one of a line, and its label on the x axis.
type point struct {
	x, y  float64
	label string
}

// panel is one line over a logarithmic x axis; its y axis begins at 0.
type panel struct {
	title  string
	format string // of a y value
	points []point
}

// lineChart draws panels beside each other.
func lineChart(title string, panels []panel) string {
	const each, height, top, bottom, side = 420, 300, 84, 44, 46
	var d drawing
	d.begin(each*len(panels)+20, height, title)
	for n, p := range panels {
		left := float64(20 + n*each)
		d.text(left, 56, "start", muted, html.EscapeString(p.title))
		least, most, high := math.Inf(1), math.Inf(-1), 0.0
		for _, q := range p.points {
			least, most, high = math.Min(least, math.Log(q.x)), math.Max(most, math.Log(q.x)), math.Max(high, q.y)
		}
		place := func(q point) (x, y float64) {
			x, y = left+side, height-bottom
			if most > least {
				x += (math.Log(q.x) - least) / (most - least) * (each - 2*side - 20)
			}
			if high > 0 {
				y -= q.y / high * (height - top - bottom)
			}
			return x, y
		}
		d.add(`<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="%s"/>`+"\n", left, height-bottom, left+each-side,
			height-bottom, muted)
		var path []string
		for _, q := range p.points {
			x, y := place(q)
			path = append(path, fmt.Sprintf("%.1f,%.1f", x, y))
			d.add(`<circle cx="%.1f" cy="%.1f" r="4" fill="%s"/>`+"\n", x, y, strong)
			d.text(x, y-10, "middle", ink, html.EscapeString(fmt.Sprintf(p.format, q.y)))
			d.text(x, height-bottom+20, "middle", muted, html.EscapeString(q.label))
		}
		d.add(`<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(path, " "), strong)
	}
	return d.end()
}
