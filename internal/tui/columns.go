package tui

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// cell is one value of a grid. One with draw draws itself at the width its column gets.
type cell struct {
	text string
	tail string // what clipping leaves
	// brief is shown where clipping would leave of text no more than its beginning and a few letters.
	brief string
	tone  tone
	draw  func(width int) string
}

// fewLetters of a reason say nothing.
const fewLetters = 12

func word(as tone, s string) cell { return cell{text: clean(s), tone: as} }

// reasoned is a few words with their reason, which a narrow column leaves out.
func reasoned(as tone, words, reason string) cell {
	c := word(as, words+reason)
	c.brief = clean(words)
	return c
}

// clip is the text in at most width cells.
func (c cell) clip(t theme, width int) string {
	if c.brief != "" && cells(c.text) > width && width < cells(c.brief)+fewLetters {
		return t.clip(c.brief, width)
	}
	if c.tail == "" || cells(c.text+c.tail) <= width || width <= cells(c.tail)+1 {
		return t.clip(c.text+c.tail, width)
	}
	return t.clip(c.text, width-cells(c.tail)) + c.tail
}

// column is one column of a grid.
type column struct {
	title string
	right bool
	// drop says which column leaves first when the window is narrow: the highest. 0 stays to the end.
	drop int
	// width is how wide it is at least, so that values which come and go move no other column.
	width int
	// least and most bound the width of a column that gives and takes; most 0 is one as wide as its cells.
	least, most int
	// tight is how narrow it becomes when no column is left that may leave; 0 is not narrower.
	tight int
	// rest is set if the column takes the width that the others leave.
	rest bool
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
	out := []string{g.titleLine(t, shown, widths, width, newSight(from, height-1, len(g.rows)))}
	for i := from; i < len(g.rows) && len(out) < height; i++ {
		lead := "  "
		if i == chosen {
			lead = t.paint(strong, t.here) + " "
		}
		out = append(out, t.clip(lead+g.line(t, shown, widths, g.rows[i]), width))
	}
	return out
}

// titleLine are the titles, and which rows are in sight when not all are: at the right end, else behind the first
// title, else an arrow.
func (g grid) titleLine(t theme, shown, widths []int, width int, s sight) string {
	titles := g.titles()
	line := "  " + g.line(t, shown, widths, titles)
	more := s.words(t)
	if more == "" {
		return t.clip(line, width)
	}
	if cells(line)+2+cells(more) <= width {
		return t.ends(line, t.paint(dim, more), width)
	}
	first, room, rest := titles[shown[0]].text, widths[shown[0]], shown[1:]
	if len(rest) > 0 && titles[rest[0]].text == "" {
		room, rest = room+gap+widths[rest[0]], rest[1:]
	}
	for _, words := range []string{more, s.arrows(t)} {
		if cells(first)+1+cells(words) <= room {
			first += " " + words
			break
		}
	}
	return t.clip("  "+t.paint(dim, t.fit(first, room, false))+strings.Repeat(" ", gap)+g.line(t, rest, widths, titles),
		width)
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
	shown = g.kept(least, width)
	widths = g.tightened(shown, least, width)
	spare := width - sum(widths, shown)
	turn := func(i int) int {
		if g.columns[i].rest {
			return math.MaxInt
		}
		return g.columns[i].drop
	}
	order := slices.Clone(shown)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(turn(a), turn(b)) })
	for _, i := range order {
		if more := min(spare, natural[i]-widths[i]); more > 0 {
			widths[i] += more
			spare -= more
		}
	}
	return shown, widths
}

// kept are the columns that stay in a window of this width.
func (g grid) kept(least []int, width int) []int {
	shown := make([]int, len(g.columns))
	for i := range shown {
		shown[i] = i
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
	return shown
}

// tightened are the least widths; smaller where even those do not fit. What is left then goes to the columns at the
// right, which are the numbers.
func (g grid) tightened(shown, least []int, width int) []int {
	widths := slices.Clone(least)
	if sum(least, shown) <= width {
		return widths
	}
	for _, i := range shown {
		if tight := g.columns[i].tight; tight > 0 {
			widths[i] = min(least[i], tight)
		}
	}
	spare := width - sum(widths, shown)
	for _, i := range slices.Backward(shown) {
		if more := min(spare, least[i]-widths[i]); more > 0 {
			widths[i] += more
			spare -= more
		}
	}
	return widths
}

// wanted is how wide each column would be and how narrow it may become.
func (g grid) wanted() (natural, least []int) {
	natural, least = make([]int, len(g.columns)), make([]int, len(g.columns))
	for i, c := range g.columns {
		n := max(cells(c.title), c.width)
		for _, row := range g.rows {
			if i < len(row) && row[i].draw == nil {
				n = max(n, cells(row[i].text+row[i].tail))
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
		text := c.clip(t, widths[i])
		pad := strings.Repeat(" ", max(0, widths[i]-cells(text)))
		if g.columns[i].right {
			b.WriteString(pad)
			pad = ""
		}
		b.WriteString(t.paint(c.tone, text) + pad)
	}
	return strings.TrimRight(b.String(), " ")
}
