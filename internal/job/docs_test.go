package job_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
)

func TestTheReferenceListsEveryKeyAndNoOther(t *testing.T) {
	text, err := os.ReadFile("../../docs/job-file.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+(?:[][a-zA-Z_.]*))` \\| (.*) \\|$").FindAllStringSubmatch(string(text), -1) {
		rows[m[1]] = m[2]
	}
	for _, k := range job.Keys() {
		row, found := rows[k.Path]
		switch {
		case !found:
			t.Errorf("%s is not in the reference", k.Path)
		case k.Required != strings.Contains(row, "**required**") && k.Path != "source.columns.NAME":
			t.Errorf("%s: required is %t; the reference says %s", k.Path, k.Required, row)
		case strings.Count(row, "|") < 2:
			t.Errorf("%s has no default or no meaning: %s", k.Path, row)
		}
		delete(rows, k.Path)
	}
	for path := range rows {
		if !isType(path) {
			t.Errorf("the reference knows %s, the parser does not", path)
		}
	}
}

// isType tells the rows of the other tables apart.
func isType(word string) bool {
	_, err := job.ParseType(word)
	return err == nil
}

func TestTheReferencesSmallestJobFileParses(t *testing.T) {
	text, err := os.ReadFile("../../docs/job-file.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	example, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("no example")
	}
	parse(t, example)
}
