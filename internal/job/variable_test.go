package job_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/kappactl/kappactl/internal/job"
)

const withVariables = `job: pageviews
# the topic of the stage
source:
  topics: ["${TOPIC}", other]
  columns: {url: text, n: int}
query: |
  SELECT url, count(*) AS views
  FROM source WHERE n > ${LEAST:-0} AND url <> '$${x}'
  GROUP BY url
serve: {view: pageviews}
replay:
  workers: ${WORKERS:-4}
`

func variables(pairs ...string) job.Variables {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return job.Variables{Lookup: func(name string) (string, bool) { v, found := m[name]; return v, found }}
}

// refused are the problems of a text.
func refused(t *testing.T, text string, v job.Variables) job.Problems {
	t.Helper()
	_, err := job.ParseWith("job.yaml", []byte(text), v)
	var ps job.Problems
	if !errors.As(err, &ps) {
		t.Fatalf("got %v, want problems", err)
	}
	return ps
}

func TestVariablesAreReplacedInValues(t *testing.T) {
	s, err := job.ParseWith("job.yaml", []byte(withVariables), variables("TOPIC", "a", "WORKERS", "8", "LEAST", ""))
	if err != nil {
		t.Fatal(err)
	}
	if s.Source.Topics[0] != "a" || s.Replay.Workers != 8 || !strings.Contains(s.Query, "WHERE n > 0 AND url <> '${x}'") {
		t.Errorf("topics %v, workers %d, query %s", s.Source.Topics, s.Replay.Workers, s.Query)
	}
	if diff := cmp.Diff([]string{"LEAST", "TOPIC", "WORKERS"}, s.Variables); diff != "" {
		t.Error(diff)
	}
}

func TestTheHashIsThatOfTheExpandedText(t *testing.T) {
	literal := strings.NewReplacer(`"${TOPIC}"`, "a", "${LEAST:-0}", "5", "$${", "$${", "${WORKERS:-4}", "4").Replace(withVariables)
	want := parse(t, literal).Hash(1)
	for least, same := range map[string]bool{"5": true, "6": false} {
		s, err := job.ParseWith("job.yaml", []byte(withVariables), variables("TOPIC", "a", "LEAST", least))
		if err != nil {
			t.Fatal(err)
		}
		if (s.Hash(1) == want) != same {
			t.Errorf("LEAST=%s: hash %s, that of the text with 5 is %s", least, s.Hash(1), want)
		}
	}
}

// The text that is kept gives the same job without any variable.
func TestTheExpandedTextGivesTheSameJob(t *testing.T) {
	odd := rapid.SampledFrom([]string{
		"a", "true", "12", "1e3", "null", "~", "2026-01-01", "x: y", "- x", "# x", "*a", "&a", "!!int 5", "'", `"`, "{", "}", "[a]", "a\nb", "|", ">", " x ", "$", "${A}", "%", "@", "é",
		"a #b", "\t",
	})
	rapid.Check(t, func(t *rapid.T) {
		between := rapid.SampledFrom([]string{"", " ", "\n"}).Draw(t, "between")
		v := variables("V", strings.Join(rapid.SliceOfN(odd, 1, 3).Draw(t, "value"), between))
		team := rapid.SampledFrom([]string{"${V}", `"${V}"`, "'${V}'", "a ${V}", "|\n  ${V}", ">-\n  x\n  ${V} $${V}"}).Draw(t, "team")
		text := "job: x\nteam: " + team +
			"\nsource: {topics: [a], columns: {u: text}}\nquery: SELECT u FROM source\nserve: {view: x}\n"
		first, err := job.ParseWith("job.yaml", []byte(text), v)
		if err != nil {
			t.Skip()
		}
		second, err := job.Parse("job.yaml", first.Expanded)
		if err != nil {
			t.Fatalf("%s: %v", first.Expanded, err)
		}
		if diff := cmp.Diff(first, second, sameSpec); diff != "" {
			t.Fatalf("%s: %s", first.Expanded, diff)
		}
	})
}

func TestAFileWithoutVariablesIsKeptAsItIs(t *testing.T) {
	if s := parse(t, plain); string(s.Expanded) != plain || s.Variables != nil {
		t.Errorf("%s %v", s.Expanded, s.Variables)
	}
	s, err := job.ParseWith("job.yaml", []byte(withVariables), variables("TOPIC", "a"))
	if err != nil || !strings.Contains(string(s.Expanded), "# the topic of the stage") {
		t.Errorf("comments are lost: %v\n%s", err, s.Expanded)
	}
}

func TestAValueAddsNoStructure(t *testing.T) {
	for _, value := range []string{"a\nquery: SELECT 1", "a, b", "a: b", "[a]", "a # b", "&a b"} {
		text := replace(t, plain, "job: pageviews", "job: pageviews\nteam: ${TEAM}")
		s, err := job.ParseWith("job.yaml", []byte(text), variables("TEAM", value))
		if err != nil {
			t.Errorf("%q: %v", value, err)
			continue
		}
		if s.Team != value || s.Query != parse(t, plain).Query {
			t.Errorf("%q: team %q", value, s.Team)
		}
	}
}

// A value without quotes is what YAML makes of it, as if it had been written there.
func TestAValueWithoutQuotesHasItsOwnType(t *testing.T) {
	for _, c := range []struct{ line, value, want string }{
		{"team: ${V}", "5", "team: want a text, not the number 5"},
		{`team: "${V}"`, "5", ""},
		{"auto_retire: ${V}", "false", ""},
		{"auto_retire: \"${V}\"", "false", "want true or false"},
		{"distinct_max: ${V}", "x", "want a whole number"},
		{"team: ${V}", "", "team: there is no value"},
	} {
		text := replace(t, plain, "job: pageviews", "job: pageviews\n"+c.line)
		_, err := job.ParseWith("job.yaml", []byte(text), variables("V", c.value))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s with %q: %v", c.line, c.value, err)
		}
	}
}

func TestVariablesThatCannotBeReplacedAreNamedAtTheirPlace(t *testing.T) {
	for _, c := range []struct {
		from, to, place, cause string
		line, column           int
	}{
		{`"${TOPIC}", other`, `a, "x-${UNSET}"`, "source.topics[1]", "the variable UNSET is not defined", 4, 18},
		{"${LEAST:-0}", "${LEAST}", "query", "the variable LEAST is not defined", 8, 25},
		{"${LEAST:-0}", "${LEAST", "query", "${ without a name and a closing brace", 8, 25},
		{"${WORKERS:-4}", "${1}", "replay.workers", "${ without a name and a closing brace", 12, 12},
		{"${WORKERS:-4}", "${API_TOKEN:-4}", "replay.workers", "${API_TOKEN} is a secret", 12, 12},
		{"${WORKERS:-4}", "${CONTROL}", "replay.workers", "the value of CONTROL has control characters", 12, 12},
		{"view: pageviews", "view: pageviews, \"${TOPIC}\": x", "serve.${TOPIC}", "the key has a variable in it", 10, 26},
	} {
		v := variables("TOPIC", "a", "CONTROL", "\x1b[2J")
		v.Secret = func(name, _ string) bool { return name == "API_TOKEN" }
		ps := refused(t, replace(t, withVariables, c.from, c.to), v)
		p := ps[0]
		if len(ps) != 1 || p.Path != c.place || !strings.HasPrefix(p.Cause, c.cause) || p.Line != c.line || p.Column != c.column || p.Cure == "" {
			t.Errorf("%s: %d:%d in\n%v", c.to, p.Line, p.Column, ps)
		}
	}
}

// Problems in a text with variables are shown where the file has them.
func TestPlacesBehindAVariableAreThoseOfTheFile(t *testing.T) {
	s, err := job.ParseWith("job.yaml", []byte(withVariables), variables("TOPIC", "a", "LEAST", "1000000"))
	if err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string][2]int{
		"views": {7, 27}, "1000000": {8, 25}, "000": {8, 25}, "AND": {8, 37}, "url <>": {8, 41}, "${x}": {8, 49}, "GROUP": {9, 3},
	} {
		p := s.ProblemAt("query", strings.Index(s.Query, word), job.DuckDBSQL, "cause", "cure")
		if p.Line != want[0] || p.Column != want[1] {
			t.Errorf("%s: %d:%d, want %v", word, p.Line, p.Column, want)
		}
	}
}
