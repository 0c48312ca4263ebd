package render

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Column is one column of a table.
type Column struct {
	Title string
	Right bool // numbers
}

// Cell is one value of a table.
type Cell struct {
	Text string
	Tone Tone
}

// Text is a cell without a tone.
func Text(s string) Cell { return Cell{Text: s} }

// Toned is a cell with a tone.
func Toned(tone Tone, s string) Cell { return Cell{Text: s, Tone: tone} }

// Table is rows under titles.
type Table struct {
	columns []Column
	rows    [][]Cell
}

// NewTable makes a table of these columns. A title that starts with ">" is of a right-aligned column.
func NewTable(titles ...string) *Table {
	t := &Table{}
	for _, title := range titles {
		name, right := strings.CutPrefix(title, ">")
		t.columns = append(t.columns, Column{Title: name, Right: right})
	}
	return t
}

// Add appends a row; missing cells are empty, more cells than columns are dropped.
func (t *Table) Add(cells ...Cell) {
	row := make([]Cell, len(t.columns))
	for i := range row {
		if i < len(cells) {
			row[i] = Cell{Text: clean(cells[i].Text), Tone: cells[i].Tone}
		}
	}
	t.rows = append(t.rows, row)
}

// Len is the number of rows.
func (t *Table) Len() int { return len(t.rows) }

// Write prints the table: aligned with upper-case titles for people, tab-separated with a title line otherwise.
func (t *Table) Write(w io.Writer, s Style) error {
	text := t.tsv()
	if s.People {
		text = t.aligned(s)
	}
	_, err := io.WriteString(w, text)
	return err
}

func (t *Table) tsv() string {
	var b strings.Builder
	for i, c := range t.columns {
		if i > 0 {
			b.WriteByte('\t')
		}
		b.WriteString(strings.ReplaceAll(strings.ToLower(c.Title), " ", "_"))
	}
	b.WriteByte('\n')
	for _, row := range t.rows {
		for i, c := range row {
			if i > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(c.Text)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

const gap = "  "

func (t *Table) aligned(s Style) string {
	widths := t.widths(s.Width)
	var b strings.Builder
	titles := make([]Cell, len(t.columns))
	for i, c := range t.columns {
		titles[i] = Toned(Dim, strings.ToUpper(c.Title))
	}
	t.line(&b, s, widths, titles)
	for _, row := range t.rows {
		t.line(&b, s, widths, row)
	}
	return b.String()
}

// narrowest is how far a column shrinks for a terminal.
const narrowest = 20

// widths are the columns' widths. What a terminal lacks the last one gives, down to narrowest; where that is not enough, the widest of
// those that hold text give it together. Their cells go on in lines of their own.
func (t *Table) widths(terminal int) []int {
	widths := make([]int, len(t.columns))
	lacks := -terminal
	for i, c := range t.columns {
		widths[i] = utf8.RuneCountInString(c.Title)
		for _, row := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i].Text))
		}
		lacks += widths[i]
	}
	lacks += len(gap) * max(0, len(widths)-1)
	last := len(widths) - 1
	if terminal <= 0 || lacks <= 0 || last < 0 {
		return widths
	}
	if widths[last]-lacks >= narrowest {
		widths[last] -= lacks
		return widths
	}
	for ; lacks > 0; lacks-- {
		widest := t.widest(widths)
		if widths[widest] <= narrowest {
			break
		}
		widths[widest]--
	}
	return widths
}

// widest is the widest column that can be shrunk: the last one, or one of text before it.
func (t *Table) widest(widths []int) int {
	widest := len(widths) - 1
	for i, c := range t.columns {
		if !c.Right && widths[i] > widths[widest] {
			widest = i
		}
	}
	return widest
}

// line prints a row; a cell that is wider than its column goes on in lines of its own.
func (t *Table) line(b *strings.Builder, s Style, widths []int, row []Cell) {
	parts, lines := make([][]string, len(row)), 0
	for i, c := range row {
		parts[i] = Wrap(c.Text, widths[i])
		lines = max(lines, len(parts[i]))
	}
	for n := range lines {
		cells := make([]Cell, len(row))
		for i, c := range row {
			if n < len(parts[i]) {
				cells[i] = Cell{Text: parts[i][n], Tone: c.Tone}
			}
		}
		t.oneLine(b, s, widths, cells)
	}
}

func (t *Table) oneLine(b *strings.Builder, s Style, widths []int, row []Cell) {
	var line strings.Builder
	pending := ""
	for i, c := range row {
		text := c.Text
		pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text))
		if t.columns[i].Right {
			pending += pad
			pad = ""
		}
		if text != "" {
			line.WriteString(pending + s.Paint(c.Tone, text))
			pending = ""
		}
		pending += pad + gap
	}
	b.WriteString(line.String() + "\n")
}

// Wrap breaks a text into lines of at most width characters, between words where it can; at least one line.
func Wrap(s string, width int) []string {
	var out []string
	rest := []rune(s)
	for len(rest) > width {
		end := width
		for end > 0 && rest[end] != ' ' {
			end--
		}
		if end == 0 { // a word that is longer than a line
			end = width
		}
		out = append(out, strings.TrimRight(string(rest[:end]), " "))
		rest = []rune(strings.TrimLeft(string(rest[end:]), " "))
	}
	return append(out, string(rest))
}

// clean keeps a cell on one line and the terminal safe from text that came from elsewhere.
func clean(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, s))
}
