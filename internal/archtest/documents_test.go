package archtest

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

var (
	fence   = regexp.MustCompile("(?ms)^ *```.*?^ *```[^\n]*$")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	// named are the documents and examples that texts and messages name by their path from the root.
	named = regexp.MustCompile(`\b(?:docs|examples|packaging|scripts)/[\w./-]*\w\.(?:md|sql|yaml|yml|json|sh|service|svg)\b`)
)

// markdown are the documents of the project, by path from the root, without their code blocks.
func markdown(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	walk(t, func(name string, text []byte) {
		if strings.HasSuffix(name, ".md") && !strings.Contains("/"+name, "/testdata/") {
			out[name] = fence.ReplaceAllString(string(text), "")
		}
	})
	if out["README.md"] == "" || out["docs/README.md"] == "" {
		t.Fatal("no documents found: this test checks nothing")
	}
	return out
}

// anchors are the names by which the headings of a document can be linked to: lower case, without punctuation, spaces
// as hyphens, a number behind those that come again.
func anchors(text string) []string {
	var out []string
	seen := map[string]int{}
	for _, found := range heading.FindAllStringSubmatch(text, -1) {
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(found[1]))
		if n := seen[name]; n > 0 {
			out = append(out, fmt.Sprintf("%s-%d", name, n))
		} else {
			out = append(out, name)
		}
		seen[name]++
	}
	return out
}

func TestLinksInDocumentsLeadSomewhere(t *testing.T) {
	documents := markdown(t)
	for name, text := range documents {
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(found[1], "://") {
				continue // another site's pages are not ours to test
			}
			file, anchor, _ := strings.Cut(found[1], "#")
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			if _, err := os.Stat(filepath.Join(root(t), target)); err != nil {
				t.Errorf("%s links to %s, which is not there", name, found[1])
				continue
			}
			if anchor != "" && !slices.Contains(anchors(documents[target]), anchor) {
				t.Errorf("%s links to %s, but %s has no such heading; it has %v", name, found[1], target, anchors(documents[target]))
			}
		}
	}
}

func TestFilesThatTextsNameAreThere(t *testing.T) {
	walk(t, func(name string, text []byte) {
		if !slices.Contains([]string{".go", ".md", ".sh", ".yaml", ".yml", ".sql", ".service"}, path.Ext(name)) {
			return
		}
		for _, at := range named.FindAllIndex(text, -1) {
			if at[0] > 0 && (text[at[0]-1] == '/' || text[at[0]-1] == '.') {
				continue // below another folder, as in $HOME/docs/a.md
			}
			file := string(text[at[0]:at[1]])
			if _, err := os.Stat(filepath.Join(root(t), file)); err != nil {
				t.Errorf("%s:%d names %s, which is not there", name, bytes.Count(text[:at[0]], []byte("\n"))+1, file)
			}
		}
	})
}

func TestDocumentsAreListed(t *testing.T) {
	documents := markdown(t)
	for name := range documents {
		folder, file := path.Split(name)
		if file == "README.md" || (folder != "docs/" && folder != "docs/decisions/") {
			continue
		}
		if list := folder + "README.md"; !strings.Contains(documents[list], "]("+file+")") {
			t.Errorf("%s does not list %s: who looks there will not find it", list, file)
		}
	}
}

func TestMigrationsAreListed(t *testing.T) {
	const folder = "internal/pg/migrations/"
	list, files := markdown(t)[folder+"README.md"], 0
	walk(t, func(name string, _ []byte) {
		if file, ok := strings.CutPrefix(name, folder); ok && path.Ext(file) == ".sql" {
			files++
			if !strings.Contains(list, "`"+file+"`") {
				t.Errorf("%sREADME.md does not list %s", folder, file)
			}
		}
	})
	if files == 0 {
		t.Fatal("no migrations found: this test checks nothing")
	}
}

func TestTheArchitectureNamesEveryPackage(t *testing.T) {
	text := markdown(t)["docs/architecture.md"]
	seen := map[string]bool{}
	for _, s := range sources(t) {
		if seen[s.pkg] {
			continue
		}
		seen[s.pkg] = true
		if !strings.Contains(text, "`"+s.pkg+"`") {
			t.Errorf("docs/architecture.md does not say what `%s` is for", s.pkg)
		}
	}
	for pkg := range allowed {
		if !seen[pkg] {
			t.Errorf("internal/archtest/rules_test.go has a rule for %s, which is no package", pkg)
		}
	}
}
