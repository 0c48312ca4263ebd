package render

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// Markdown formats a document of this project for a terminal: headings are emphasised, a table row becomes its first
// cell with the other cells indented below, and paragraphs are wrapped to the width of the style (80 if unknown). Code
// is unchanged.
func Markdown(text string, s Style) string {
	d := markdown{style: s, width: s.Width}
	if d.width <= 0 || d.width > 100 {
		d.width = 80
	}
	code := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "```"):
			d.flush()
			code = !code
		case code:
			d.out.WriteString("    " + line + "\n")
		case strings.HasPrefix(line, "#"):
			d.flush()
			d.out.WriteString(s.Paint(Strong, strings.ToUpper(inline(strings.TrimLeft(line, "# ")))) + "\n")
		case strings.HasPrefix(line, "<!--"): // a mark for the tests that write the page
			d.flush()
		case strings.HasPrefix(line, "|"):
			d.row(line)
		case strings.TrimSpace(line) == "":
			d.flush()
			d.out.WriteString("\n")
		case strings.HasPrefix(line, "- "):
			d.flush()
			d.paragraph = line
		default:
			d.paragraph += " " + line
		}
	}
	d.flush()
	return d.out.String()
}

// markdown is a document under way.
type markdown struct {
	style     Style
	width     int
	out       strings.Builder
	paragraph string
}

func (d *markdown) flush() {
	if text := strings.TrimSpace(d.paragraph); text != "" {
		hang := ""
		if strings.HasPrefix(text, "- ") {
			hang = "  "
		}
		d.wrap(inline(text), "", hang)
	}
	d.paragraph = ""
}

var rule = regexp.MustCompile(`^\|[\s|:-]*$`)

// row prints a row of a table. It prints the row of titles like the others.
func (d *markdown) row(line string) {
	d.flush()
	if rule.MatchString(line) {
		return
	}
	line = strings.ReplaceAll(strings.Trim(line, "| "), `\|`, "\x00")
	first, rest, _ := strings.Cut(line, "|")
	d.out.WriteString("  " + d.style.Paint(Strong, inline(strings.TrimSpace(first))) + "\n")
	for cell := range strings.SplitSeq(rest, "|") {
		if cell = strings.TrimSpace(cell); cell != "" {
			d.wrap(inline(cell), "      ", "      ")
		}
	}
}

// wrap prints text in lines that fit, the first after one indent and the others after another.
func (d *markdown) wrap(text, first, hang string) {
	indent, line := first, ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(indent+line+" "+word) > d.width {
			d.out.WriteString(indent + line + "\n")
			indent, line = hang, ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	d.out.WriteString(indent + line + "\n")
}

var link = regexp.MustCompile(`\[([^\]]*)\]\(([^)]*)\)`)

// inline takes the marks out of a line: code, emphasis, links.
func inline(text string) string {
	text = link.ReplaceAllString(text, "$1")
	return strings.NewReplacer("`", "", "**", "", "\x00", "|").Replace(text)
}
