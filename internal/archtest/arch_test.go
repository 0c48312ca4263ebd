package archtest

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/kappactl/kappactl"

// source is one Go file of the module.
type source struct {
	pkg   string // folder from the module's root, with slashes
	name  string
	text  []byte
	ast   *ast.File
	lines int
}

func (s source) path() string { return path.Join(s.pkg, s.name) }
func (s source) test() bool   { return strings.HasSuffix(s.name, "_test.go") }

func (s source) imports() []string {
	var out []string
	for _, i := range s.ast.Imports {
		out = append(out, strings.Trim(i.Path.Value, `"`))
	}
	return out
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if parent := filepath.Dir(dir); parent != dir {
			dir = parent
			continue
		}
		t.Fatal("no go.mod above this package")
	}
}

// walk calls f with each file of the project, by its path from the root.
func walk(t *testing.T, f func(name string, text []byte)) {
	t.Helper()
	top := os.DirFS(root(t))
	err := fs.WalkDir(top, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name == ".git" && !e.IsDir() {
			return nil // a work tree beside the repository
		}
		if e.IsDir() {
			if slices.Contains([]string{".git", "bin", "node_modules", ".cache", "target"}, e.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if info, err := e.Info(); err != nil || !info.Mode().IsRegular() || info.Size() > 2<<20 {
			return err
		}
		text, err := fs.ReadFile(top, name)
		if err != nil {
			return err
		}
		f(name, text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func sources(t *testing.T) []source {
	t.Helper()
	var out []source
	walk(t, func(name string, text []byte) {
		if !strings.HasSuffix(name, ".go") || strings.Contains("/"+name, "/testdata/") {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		out = append(out, source{
			pkg: path.Dir(name), name: path.Base(name), text: text, ast: file,
			lines: bytes.Count(text, []byte("\n")),
		})
	})
	if len(out) == 0 {
		t.Fatal("no Go files found: this test checks nothing")
	}
	return out
}

// owner is the entry of allowed that rules pkg: itself or the nearest folder above it.
func owner(pkg string) (string, bool) {
	for p := pkg; p != "."; p = path.Dir(p) {
		if _, ok := allowed[p]; ok {
			return p, true
		}
	}
	return "", false
}

func TestImportsFollowTheArrows(t *testing.T) {
	for _, s := range sources(t) {
		rule, known := owner(s.pkg)
		if !known {
			if !strings.HasPrefix(s.pkg, "bench") && !strings.HasPrefix(s.pkg, "examples") {
				t.Errorf("%s: package %s is not in the table of internal/archtest/rules_test.go: decide what it may import, then add it", s.path(), s.pkg)
			}
			continue
		}
		if s.test() {
			continue
		}
		for _, imported := range s.imports() {
			ours, ok := strings.CutPrefix(imported, module+"/")
			if !ok {
				continue
			}
			to, _ := owner(ours)
			if to != rule && !slices.Contains(allowed[rule], "*") && !slices.Contains(allowed[rule], to) {
				t.Errorf("%s imports %s: %s may import only %v; declare an interface here and let internal/cli join them",
					s.path(), ours, rule, allowed[rule])
			}
			if strings.HasSuffix(to, "test") && to != "abtest" && rule != "internal/testservers" && !strings.HasSuffix(rule, "test") {
				t.Errorf("%s imports %s, which is for tests only", s.path(), ours)
			}
		}
	}
}

func TestSmallPackagesKeepTheirLibraries(t *testing.T) {
	for _, s := range sources(t) {
		libraries, limited := thirdParty[s.pkg]
		if !limited || s.test() {
			continue
		}
		for _, imported := range s.imports() {
			first, _, _ := strings.Cut(imported, "/")
			if strings.Contains(first, ".") && !strings.HasPrefix(imported, module) && !slices.Contains(libraries, imported) {
				t.Errorf("%s imports %s: %s uses the standard library and %v only", s.path(), imported, s.pkg, libraries)
			}
		}
	}
}

func TestPureFilesReachNoServer(t *testing.T) {
	for _, s := range sources(t) {
		if !slices.Contains(pureFiles, s.name) {
			continue
		}
		for _, imported := range s.imports() {
			short := strings.TrimPrefix(imported, module+"/")
			for _, forbidden := range io {
				if short == forbidden || strings.HasPrefix(short, forbidden+"/") {
					t.Errorf("%s imports %s: %s is a pure file (decisions only); move the input and output to store.go or the caller",
						s.path(), imported, s.name)
				}
			}
		}
	}
}

func TestFilesAreShort(t *testing.T) {
	for _, s := range sources(t) {
		limit := maxLines
		switch {
		case s.test():
			limit = maxTestLines
		case s.pkg == "cmd/kappactl" && s.name == "main.go":
			limit = maxMainLines
		}
		if s.lines > limit && !ast.IsGenerated(s.ast) {
			t.Errorf("%s has %d lines, more than %d: split it by concern", s.path(), s.lines, limit)
		}
	}
}

func TestThePartsOfReprocessStaySmall(t *testing.T) {
	lines := map[string]int{}
	for _, s := range sources(t) {
		if !s.test() && strings.HasPrefix(s.pkg+"/", "reprocess/") {
			lines[s.pkg] += s.lines
		}
	}
	if len(lines) < 2 {
		t.Fatal("reprocess has no parts: this test checks nothing")
	}
	for pkg, n := range lines {
		if n > maxPartLines {
			t.Errorf("%s has %d lines of production code, more than %d: move what does not need the rest to a part below it", pkg, n, maxPartLines)
		}
	}
}

func TestPackagesSayWhatTheyAre(t *testing.T) {
	said := map[string]bool{}
	for _, s := range sources(t) {
		if !s.test() {
			said[s.pkg] = said[s.pkg] || s.ast.Doc != nil
		}
	}
	for pkg, ok := range said {
		if !ok {
			t.Errorf("package %s has no package comment: write doc.go", pkg)
		}
	}
	for _, pkg := range []string{"reprocess", "serving", "abtest", "speedlayer", "batchlayer"} {
		if _, err := os.Stat(filepath.Join(root(t), pkg, "doc.go")); said[pkg] && err != nil {
			t.Errorf("capability package %s has no doc.go", pkg)
		}
	}
}

func TestNamesSayWhatIsInside(t *testing.T) {
	for _, s := range sources(t) {
		name := strings.TrimSuffix(strings.TrimSuffix(s.name, ".go"), "_test")
		if slices.Contains(badNames, name) || slices.Contains(badNames, path.Base(s.pkg)) {
			t.Errorf("%s: a file or folder is named after what is inside, never %v", s.path(), badNames)
		}
	}
}

func TestNothingNamesThisMachineOrARegistry(t *testing.T) {
	walk(t, func(name string, text []byte) {
		for _, word := range foreign {
			if at := bytes.Index(text, []byte(word)); at >= 0 && !bytes.ContainsRune(text[:min(len(text), 8000)], 0) {
				t.Errorf("%s:%d names %s: the project must work elsewhere", name, bytes.Count(text[:at], []byte("\n"))+1, word)
			}
		}
	})
}
