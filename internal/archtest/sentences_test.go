package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// prose are names of fields that hold sentences for people. Code decides on codes and types instead.
var prose = []string{"Reason", "Message", "Detail", "Cause", "Text", "Answer", "Warning", "VersionError"}

// readers are the functions of package strings that look into a text.
var readers = []string{"HasPrefix", "HasSuffix", "Contains", "Cut", "CutPrefix", "CutSuffix", "EqualFold", "Index"}

// proseColumns finds conditions of SQL on the words in such a column.
var proseColumns = regexp.MustCompile(`(?i)\b(message|reason|answer|error)\s+((NOT\s+)?(I?LIKE|SIMILAR)\b|~|\^@|<>\s*'[^'])` +
	`|(?i)\b(starts_with|position|strpos|left)\s*\(\s*(\w+\.)?(message|reason|answer|error)\b`)

// readsSentences lists the functions that read a sentence all the same, with why nothing that lasts depends on it.
var readsSentences = map[string]string{
	"bench/live.go:scrape":                             "lines of a metrics page, which are no sentences",
	"internal/format/framing.go:framed":                "Reason is a type with a full list there",
	"internal/mergecheck/check.go:AllFail":             "the reason of a dead letter is one of format's codes",
	"internal/trial/deadletters.go:deadLetterMismatch": "compares dead letters with those that a test file expects",
	"internal/cli/follow.go:overlaid":                  "prints the first line of a message",
	"internal/pg/errors.go:plain":                      "the SQLSTATE does not tell which of two causes refused the connection",
	"serving/errors.go:refused":                        "SQLSTATE 42704 does not tell which kind of object is missing",
}

// TestNoSentenceDecidesAnything: a text that an editor corrects must not change what the product does.
func TestNoSentenceDecidesAnything(t *testing.T) {
	used := map[string]bool{}
	for _, s := range sources(t) {
		if s.test() || strings.HasSuffix(s.pkg, "test") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), s.name, s.text, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			found := sentencesIn(d)
			if len(found) == 0 {
				continue
			}
			place := s.path() + ":" + nameOf(d)
			used[place] = true
			if readsSentences[place] == "" {
				t.Errorf("%s depends on the words of %s: decide on a reason's code, or on a type", place, strings.Join(found, ", "))
			}
		}
	}
	for place := range readsSentences {
		if !used[place] {
			t.Errorf("readsSentences lists %s, which reads no sentence", place)
		}
	}
}

func nameOf(d ast.Decl) string {
	if f, ok := d.(*ast.FuncDecl); ok {
		return f.Name.Name
	}
	return "declaration"
}

// sentencesIn are the expressions in a declaration that look at the words of a sentence.
func sentencesIn(d ast.Node) []string {
	var out []string
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && lastName(f.X) == "strings" && slices.Contains(readers, f.Sel.Name) {
				out = append(out, sentences(n.Args)...)
			}
		case *ast.BinaryExpr:
			if (n.Op == token.EQL || n.Op == token.NEQ) && !empty(n.X) && !empty(n.Y) {
				out = append(out, sentences([]ast.Expr{n.X, n.Y})...)
			}
		case *ast.SwitchStmt:
			if n.Tag != nil {
				out = append(out, sentences([]ast.Expr{n.Tag})...)
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING && proseColumns.MatchString(n.Value) {
				out = append(out, proseColumns.FindString(n.Value))
			}
		}
		return true
	})
	return out
}

// sentences are those of the expressions that are a field or a method that holds a sentence.
func sentences(in []ast.Expr) []string {
	var out []string
	for _, e := range in {
		if call, ok := e.(*ast.CallExpr); ok && len(call.Args) == 0 {
			e = call.Fun
		}
		if s, ok := e.(*ast.SelectorExpr); ok && slices.Contains(prose, s.Sel.Name) {
			out = append(out, fmt.Sprintf("%s.%s", lastName(s.X), s.Sel.Name))
		}
	}
	return out
}

func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return "…"
}

// empty reports whether an expression is "" or nil: whether there is a sentence is a fair question.
func empty(e ast.Expr) bool {
	if l, ok := e.(*ast.BasicLit); ok {
		return l.Value == `""`
	}
	return lastName(e) == "nil"
}
