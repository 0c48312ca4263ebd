package tui

import (
	"cmp"
	"slices"
	"strings"
)

// cell is one value of a grid. One with draw draws itself at the width its column gets.
type cell struct {
	text string
	tone tone
	draw func(width int) string
}

func word(as tone, s string) cell { return cell{text: clean(s), tone: as} }

// column is one column of a grid.
type column struct {
	title string
	right bool
	// drop says which column leaves first when the window is narrow: the highest. 0 stays to the end.
	drop int
	// least and most bound the width of a column that gives and takes; most 0 is one as wide as its cells.
	least, most int
}

// grid is aligned rows under titles. Its widths come from all rows, so that scrolling moves no column.
type grid struct {
	columns []column
	rows    [][]cell
}

const gap = 2

// lines are the title and the rows from, from+1, … as far as height goes; chosen is marked, -1 is none.
func (g grid) lines(t theme, width, height, from, chosen int) []string {
	if height <= 0 || width <= 0 {
		return nil
	}
	shown, widths := g.layout(width - 2)
	out := []string{"  " + g.line(t, shown, widths, g.titles())}
	for i := from; i < len(g.rows) && len(out) < height; i++ {
		lead := "  "
		if i == chosen {
			lead = t.paint(strong, t.here) + " "
		}
		out = append(out, t.clip(lead+g.line(t, shown, widths, g.rows[i]), width))
	}
	out[0] = t.clip(out[0], width)
	return out
}

func (g grid) titles() []cell {
	out := make([]cell, len(g.columns))
	for i, c := range g.columns {
		out[i] = cell{text: strings.ToUpper(c.title), tone: dim}
	}
	return out
}

// layout chooses the columns that fit and their widths.
func (g grid) layout(width int) (shown, widths []int) {
	natural, least := g.wanted()
	for i := range g.columns {
		shown = append(shown, i)
	}
	for len(shown) > 1 && sum(least, shown) > width {
		worst := -1
		for at, i := range shown {
			if g.columns[i].drop > 0 && (worst < 0 || g.columns[i].drop > g.columns[shown[worst]].drop) {
				worst = at
			}
		}
		if worst < 0 {
			break
		}
		shown = append(shown[:worst:worst], shown[worst+1:]...)
	}
	spare := width - sum(least, shown)
	widths = make([]int, len(g.columns))
	order := slices.Clone(shown)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(g.columns[a].drop, g.columns[b].drop) })
	for _, i := range order {
		widths[i] = least[i]
		if more := min(spare, natural[i]-least[i]); more > 0 {
			widths[i] += more
			spare -= more
		}
	}
	return shown, widths
}

// wanted is how wide each column would be and how narrow it may become.
func (g grid) wanted() (natural, least []int) {
	natural, least = make([]int, len(g.columns)), make([]int, len(g.columns))
	for i, c := range g.columns {
		n := cells(c.title)
		for _, row := range g.rows {
			if i < len(row) && row[i].draw == nil {
				n = max(n, cells(row[i].text))
			} else if i < len(row) {
				n = max(n, c.most)
			}
		}
		natural[i], least[i] = n, n
		if c.most > 0 {
			natural[i] = min(n, c.most)
			least[i] = min(natural[i], max(c.least, 1))
		}
	}
	return natural, least
}

func sum(widths, of []int) int {
	total := gap * max(0, len(of)-1)
	for _, i := range of {
		total += widths[i]
	}
	return total
}

func (g grid) line(t theme, shown, widths []int, row []cell) string {
	var b strings.Builder
	for at, i := range shown {
		if at > 0 {
			b.WriteString(strings.Repeat(" ", gap))
		}
		if i >= len(row) {
			continue
		}
		c := row[i]
		if c.draw != nil {
			b.WriteString(t.fit(c.draw(widths[i]), widths[i], g.columns[i].right))
			continue
		}
		text := t.clip(c.text, widths[i])
		pad := strings.Repeat(" ", max(0, widths[i]-cells(text)))
		if g.columns[i].right {
			b.WriteString(pad)
			pad = ""
		}
		b.WriteString(t.paint(c.tone, text) + pad)
	}
	return strings.TrimRight(b.String(), " ")
}
