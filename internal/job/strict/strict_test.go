package strict_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job/strict"
)

type settings struct {
	name  string
	words []string
	on    bool
	count int
	kind  string
	at    time.Time
}

func keys(s *settings) strict.Value {
	return strict.Mapping(
		strict.Key{Name: "name", Required: true, Value: strict.Text(&s.name)},
		strict.Key{Name: "words", Value: strict.Texts(&s.words)},
		strict.Key{Name: "on", Value: strict.Bool(&s.on)},
		strict.Key{Name: "count", Value: strict.Int(&s.count, 1, 9)},
		strict.Key{Name: "kind", Value: strict.OneOf(&s.kind, "red", "green")},
		strict.Key{Name: "at", Value: strict.Written("date", &s.at, func(text string) (time.Time, error) { return time.Parse(time.DateOnly, text) })},
	)
}

func TestValuesGoWhereTheTableSays(t *testing.T) {
	var s settings
	d := strict.Read([]byte("\ufeffname: 'true'\nwords: [a, \"1\"]\non: True\ncount: 9\nkind: green\nat: 2026-01-02\n"), keys(&s))
	if len(d.Faults) > 0 {
		t.Fatal(d.Faults)
	}
	want := settings{"true", []string{"a", "1"}, true, 9, "green", time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)}
	if diff := cmp.Diff(want, s, cmp.AllowUnexported(settings{})); diff != "" {
		t.Error(diff)
	}
	if n := d.Node("words[1]"); n == nil || n.Line != 2 || n.Column != 12 {
		t.Errorf("words[1] stands at %+v", n)
	}
}

func TestFaultsComeInTheOrderOfTheTextWithTheirPaths(t *testing.T) {
	var s settings
	d := strict.Read([]byte("kind: gren\nwords: [a, 1]\ncount: 10\nnam: x\non: 1\nat: soon\n"), keys(&s))
	var got []string
	for _, f := range d.Faults {
		got = append(got, f.Path+": "+f.Cause)
	}
	want := []string{
		`kind: unknown value "gren"`, "words[1]: want a text, not the number 1", "count: 10 is out of range", `nam: unknown key "nam"`,
		"on: want true or false, not the number 1", `at: parsing time "soon" as "2006-01-02": cannot parse "soon" as "2006"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAKeyInTheWrongMappingIsSentToItsOwn(t *testing.T) {
	var text, name, sql string
	root := strict.Mapping(
		strict.Key{Name: "distinct_max", Value: strict.Text(&text)},
		strict.Key{Name: "serve", Value: strict.Mapping(strict.Key{Name: "view", Value: strict.Text(&name)})},
		strict.Key{Name: "checks", Value: strict.Each(func() strict.Value { return strict.Mapping(strict.Key{Name: "sql", Value: strict.Text(&sql)}) })},
	)
	d := strict.Read([]byte("serve: {distinct_max: 10, views: a, colour: b}\nview: v\nsql: SELECT 1\n"), root)
	var got []string
	for _, f := range d.Faults {
		got = append(got, f.Path+": "+f.Cure)
	}
	want := []string{
		"serve.distinct_max: it is a key of the top level: move it there. Known here: view",
		"serve.views: did you mean view? known: view",
		"serve.colour: known: view",
		"view: it is a key of serve: move it there. Known here: distinct_max, serve, checks",
		"sql: it is a key of an item of checks: move it there. Known here: distinct_max, serve, checks",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTextsOfManyBytesAreNotRead(t *testing.T) {
	var s settings
	d := strict.Read([]byte("name: "+strings.Repeat("x", strict.MaxBytes)), keys(&s))
	if len(d.Faults) != 1 || !strings.Contains(d.Faults[0].Cause, "more than 1048576") {
		t.Error(d.Faults)
	}
}

func TestNearestFindsTypingErrorsOnly(t *testing.T) {
	known := []string{"topics", "format", "columns", "on_error", "sql", "at", "timestamp", "timestamptz"}
	for name, want := range map[string]string{
		"topic": "topics", "tpoics": "topics", "fromat": "format", "colums": "columns", "onerror": "on_error", "SQL": "sql", "timestampz": "timestamptz",
		"sqlx": "sql", "dashboard": "", "xyz": "", "": "", "it": "at", "tables": "",
	} {
		if got := strict.Nearest(name, known); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
