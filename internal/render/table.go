package render

import (
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/kappactl/kappactl/internal/job"
)

// Column is a column of a table.
type Column struct {
	Title string
	Right bool // right-aligned, for numbers
}

// Cell is a value of a table.
type Cell struct {
	Text string
	Tone Tone
}

// Text returns a cell without a tone.
func Text(s string) Cell { return Cell{Text: s} }

// Toned returns a cell with a tone.
func Toned(tone Tone, s string) Cell { return Cell{Text: s, Tone: tone} }

// Table is a list of rows under column titles.
type Table struct {
	columns []Column
	rows    [][]Cell
	named   bool // titles are names and are printed unchanged
}

// NewTable creates a table with these columns. A title that starts with ">" makes its column right-aligned.
func NewTable(titles ...string) *Table {
	t := &Table{}
	for _, title := range titles {
		name, right := strings.CutPrefix(title, ">")
		t.columns = append(t.columns, Column{Title: name, Right: right})
	}
	return t
}

// NewNamedTable creates a table whose titles are names, printed unchanged.
func NewNamedTable(names ...string) *Table {
	t := &Table{named: true}
	for _, name := range names {
		t.columns = append(t.columns, Column{Title: clean(name)})
	}
	return t
}

// Add appends a row. Missing cells are empty; surplus cells are dropped.
func (t *Table) Add(cells ...Cell) {
	row := make([]Cell, len(t.columns))
	for i := range row {
		if i < len(cells) {
			row[i] = Cell{Text: clean(cells[i].Text), Tone: cells[i].Tone}
		}
	}
	t.rows = append(t.rows, row)
}

// Len returns the number of rows.
func (t *Table) Len() int { return len(t.rows) }

// Write writes the table: aligned with upper-case titles for people, otherwise tab-separated with a title line.
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
		b.WriteString(t.title(c, func(s string) string { return strings.ReplaceAll(strings.ToLower(s), " ", "_") }))
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

// title returns the title of a column, changed by change unless titles are names.
func (t *Table) title(c Column, change func(string) string) string {
	if t.named {
		return c.Title
	}
	return change(c.Title)
}

const gap = "  "

func (t *Table) aligned(s Style) string {
	widths := t.widths(s.Width)
	var b strings.Builder
	titles := make([]Cell, len(t.columns))
	for i, c := range t.columns {
		titles[i] = Toned(Dim, t.title(c, strings.ToUpper))
	}
	t.line(&b, s, widths, titles)
	for _, row := range t.rows {
		t.line(&b, s, widths, row)
	}
	return b.String()
}

// narrowest is the smallest width that a column shrinks to.
const narrowest = 20

// widths returns the widths of the columns. If the table is wider than the terminal, the last column shrinks to
// narrowest at most, then the widest text columns shrink together. Cells that do not fit continue on further lines.
func (t *Table) widths(terminal int) []int {
	widths := make([]int, len(t.columns))
	lacks := -terminal
	for i, c := range t.columns {
		widths[i] = ansi.StringWidth(c.Title)
		for _, row := range t.rows {
			widths[i] = max(widths[i], ansi.StringWidth(row[i].Text))
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

// widest returns the index of the widest column that can shrink: the last one, or a text column before it.
func (t *Table) widest(widths []int) int {
	widest := len(widths) - 1
	for i, c := range t.columns {
		if !c.Right && widths[i] > widths[widest] {
			widest = i
		}
	}
	return widest
}

// line writes one row. A cell that is wider than its column continues on further lines.
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
		pad := strings.Repeat(" ", widths[i]-ansi.StringWidth(text))
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

// Wrap breaks a text into lines of at most width terminal cells, between words where possible. It returns at least one
// line.
func Wrap(s string, width int) []string {
	var out []string
	rest := []rune(s)
	for {
		fits := fitting(rest, width)
		if fits == len(rest) {
			break
		}
		end := fits
		for end > 0 && rest[end] != ' ' {
			end--
		}
		if end == 0 { // a word longer than a line
			end = max(fits, 1)
		}
		out = append(out, strings.TrimRight(string(rest[:end]), " "))
		rest = []rune(strings.TrimLeft(string(rest[end:]), " "))
	}
	return append(out, string(rest))
}

// fitting returns how many characters of a text fit into width terminal cells.
func fitting(text []rune, width int) int {
	used := 0
	for i, r := range text {
		if used += ansi.StringWidth(string(r)); used > width {
			return i
		}
	}
	return len(text)
}

// clean keeps a cell on one line and removes control characters from untrusted text.
func clean(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if job.Steers(r) || r == '\n' || r == '\t' {
			return ' '
		}
		return r
	}, s))
}
