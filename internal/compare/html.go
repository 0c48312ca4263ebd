package compare

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"time"
)

//go:embed page.html
var pageText string

// bar is the median of one way beside the others, as a share of the largest, in percent.
type bar struct {
	Way   string
	Text  string
	Share float64
}

type line struct {
	Figure
	Bars []bar
}

// HTML writes a comparison as one page without scripts or external resources.
func HTML(w io.Writer, c Comparison) error {
	t, err := template.New("page").Funcs(template.FuncMap{
		"time": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") },
	}).Parse(pageText)
	if err != nil {
		return fmt.Errorf("comparison page: %w", err)
	}
	var lines []line
	for _, f := range Figures() {
		l := line{Figure: f}
		most := 0.0
		for _, way := range Ways() {
			if s, found := f.Spread(c.Ways[way]); found {
				most = max(most, s.Median)
			}
		}
		for _, way := range Ways() {
			b := bar{Way: way.String(), Text: f.Cell(c.Ways[way], "none")}
			if s, found := f.Spread(c.Ways[way]); found && most > 0 {
				b.Share = float64(int(1000*s.Median/most)) / 10
			}
			l.Bars = append(l.Bars, b)
		}
		lines = append(lines, l)
	}
	err = t.Execute(w, struct {
		Comparison
		Lines []line
		Exact bool
	}{c, lines, c.Exact()})
	if err != nil {
		return fmt.Errorf("comparison page: %w", err)
	}
	return nil
}
