package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"
)

// maxFunction is how many lines a function has at most. A single return statement is a table, and may have more.
const maxFunction = 60

// statements are the methods that run SQL.
var statements = []string{"Query", "QueryRow", "Exec", "SendBatch", "CopyFrom"}

// runsSQL are the files of internal/cli that run SQL all the same, with the reason.
var runsSQL = map[string]string{
	"demo.go":        "the demo shows what its own view and tables hold",
	"demo_lambda.go": "it plants a fault, which the commands are to refuse",
}

// parsed calls f with each file outside of tests.
func parsed(t *testing.T, f func(s source, fset *token.FileSet, file *ast.File)) {
	t.Helper()
	for _, s := range sources(t) {
		if s.test() || ast.IsGenerated(s.ast) {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, s.name, s.text, 0)
		if err != nil {
			t.Fatal(err)
		}
		f(s, fset, file)
	}
}

func TestFunctionsAreShort(t *testing.T) {
	parsed(t, func(s source, fset *token.FileSet, file *ast.File) {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil || len(f.Body.List) == 1 {
				continue
			}
			if n := fset.Position(f.End()).Line - fset.Position(f.Pos()).Line + 1; n > maxFunction {
				t.Errorf("%s: %s has %d lines, more than %d: split it by its steps", s.path(), f.Name.Name, n, maxFunction)
			}
		}
	})
}

// TestCommandsRunNoSQL: a statement belongs to a package that is tested without the command line.
func TestCommandsRunNoSQL(t *testing.T) {
	used := map[string]bool{}
	parsed(t, func(s source, fset *token.FileSet, file *ast.File) {
		if s.pkg != "internal/cli" {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if f, ok := call.Fun.(*ast.SelectorExpr); ok && slices.Contains(statements, f.Sel.Name) {
				used[s.name] = true
				if runsSQL[s.name] == "" {
					t.Errorf("%s:%d runs SQL: move the statement to the package that owns what it reads",
						s.path(), fset.Position(call.Pos()).Line)
				}
			}
			return true
		})
	})
	for name := range runsSQL {
		if !used[name] {
			t.Errorf("runsSQL lists %s, which runs no SQL", name)
		}
	}
}
