package reason_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the list of codes in docs/cli-output.md")

const (
	outputPage = "../../docs/cli-output.md"
	listBegins = "<!-- the reason codes: written by make docs -->\n"
	listEnds   = "<!-- end of the reason codes -->\n"
)

// TestReasonCodesInSync compares the list in docs/cli-output.md with the catalogue; -update writes it.
func TestReasonCodesInSync(t *testing.T) {
	page, err := os.ReadFile(outputPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), listBegins)
	_, after, ended := strings.Cut(rest, listEnds)
	if !found || !ended {
		t.Fatalf("%s has no marks around its list of codes", outputPage)
	}
	want := before + listBegins + codeList() + listEnds + after
	if *update {
		if err := os.WriteFile(outputPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(page)); diff != "" {
		t.Errorf("%s does not list the codes of the catalogue (make docs writes it):\n%s", outputPage, diff)
	}
}

// codeList is a line for each code, with the first line of its first example.
func codeList() string {
	lines := map[string]string{}
	for _, e := range examples() {
		code := string(e.reason.Code)
		if _, known := lines[code]; !known {
			text, _, _ := strings.Cut(e.text, "\n")
			lines[code] = fmt.Sprintf("| `%s` | %s |\n", code, strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(text))
		}
	}
	sorted := make([]string, 0, len(lines))
	for _, line := range lines {
		sorted = append(sorted, line)
	}
	slices.Sort(sorted)
	return "| code | text, for example |\n| --- | --- |\n" + strings.Join(sorted, "")
}
