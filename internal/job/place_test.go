package job_test

import (
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
)

// withQuery is a job file with the query written in the given way; the word HERE in it is what a problem is about.
func withQuery(query string) string {
	return "job: places\nsource: {topics: [a], columns: {x: int}}\n" + query + "serve: {view: places}\n"
}

func TestProblemInsideATextStandsWhereItIsInTheFile(t *testing.T) {
	tests := []struct {
		name, query  string
		line, column int
	}{
		{"plain", "query: SELECT HERE FROM source\n", 3, 15},
		{"double quotes", "query: \"SELECT HERE FROM source\"\n", 3, 16},
		{"single quotes", "query: 'SELECT HERE FROM source'\n", 3, 16},
		{"literal", "query: |\n  SELECT x,\n    HERE\n  FROM source\n", 5, 5},
		{"literal with empty lines", "query: |\n\n  SELECT x,\n\n\n    HERE\n", 8, 5},
		{"literal with a comment behind the bar", "query: |-  # DuckDB\n      SELECT x,\n       HERE\n", 5, 8},
		{"literal with an indent indicator", "query: |2\n    SELECT x,\n    HERE\n", 5, 5},
		{"literal with letters of two bytes", "query: |\n  SELECT 'größe', HERE\n", 4, 19},
		{"literal with carriage returns", "query: |\r\n  SELECT x,\r\n    HERE\r\n", 5, 5},
		{"folded: the text as a whole", "query: >\n  SELECT x,\n  HERE\n", 3, 8},
		{"plain over two lines: the text as a whole", "query: SELECT x,\n  y HERE\n", 3, 8},
		{"escape before it: the text as a whole", "query: \"SELECT '\\t' HERE\"\n", 3, 8},
		{"escape behind it", "query: \"SELECT HERE '\\t'\"\n", 3, 16},
		{"doubled quote before it: the text as a whole", "query: 'SELECT ''a'' HERE'\n", 3, 8},
		{"after other keys on the line", "replay: {start: earliest}\nquery: SELECT HERE\n", 4, 15},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := parse(t, withQuery(tt.query))
			p := s.ProblemAt("query", strings.Index(s.Query, "HERE"), job.DuckDBSQL, "cause", "cure")
			if p.Line != tt.line || p.Column != tt.column {
				t.Fatalf("%d:%d, want %d:%d\n%s", p.Line, p.Column, tt.line, tt.column, p)
			}
			if p.Dialect != job.DuckDBSQL || p.Path != "query" || p.File != "job.yaml" {
				t.Errorf("%+v", p)
			}
			shown, caret, _ := strings.Cut(p.Excerpt, "\n")
			if at := strings.Index(caret, "^"); !strings.Contains(tt.name, "as a whole") && !strings.HasPrefix(string([]rune(shown)[at:]), "HERE") {
				t.Errorf("the caret points elsewhere:\n%s", p.Excerpt)
			}
		})
	}
}

func TestProblemOfSomethingThatIsNotWrittenStandsAtWhatEnclosesIt(t *testing.T) {
	s := parse(t, plain)
	tests := []struct {
		path         string
		line, column int
	}{
		{"job", 1, 6},
		{"source.columns.n", 4, 27},
		{"source.columns.missing", 4, 12},
		{"serve.columns.twice", 6, 8},
		{"checks[3].sql", 1, 1},
		{"nonsense", 1, 1},
	}
	for _, tt := range tests {
		if line, column := s.Where(tt.path); line != tt.line || column != tt.column {
			t.Errorf("%s: %d:%d, want %d:%d", tt.path, line, column, tt.line, tt.column)
		}
	}
	p := s.ProblemAt("serve.where", 3, job.PostgreSQL, "cause", "cure")
	if p.Line != 6 || p.Column != 8 {
		t.Errorf("an offset in a text that is not there: %d:%d", p.Line, p.Column)
	}
}

func TestProblemsPrintPlaceDialectCauseExcerptAndCure(t *testing.T) {
	p := parse(t, plain).ProblemAt("query", 12, job.DuckDBSQL, "count(*) is \x1b[31mred", "take another")
	want := `job.yaml:5:20: query: DuckDB SQL: count(*) is ·[31mred
    5 | query: SELECT url, count(*) AS views FROM source GROUP BY url
      |                    ^
  fix: take another`
	if p.String() != want {
		t.Errorf("got\n%s\nwant\n%s", p, want)
	}
}

func TestALongLineIsCutAroundTheCaret(t *testing.T) {
	s := parse(t, withQuery("query: SELECT "+strings.Repeat("x + ", 100)+"HERE"+strings.Repeat(" + x", 100)+"\n"))
	p := s.ProblemAt("query", strings.Index(s.Query, "HERE"), job.DuckDBSQL, "cause", "cure")
	shown, caret, _ := strings.Cut(p.Excerpt, "\n")
	if n := len([]rune(shown)); n > 120 {
		t.Errorf("%d characters", n)
	}
	if at := strings.Index(caret, "^"); at < 0 || !strings.HasPrefix(string([]rune(shown)[at:]), "HERE") {
		t.Errorf("the caret points elsewhere:\n%s", p.Excerpt)
	}
}
