package render_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/render"
)

func TestMarkdownIsTextForATerminal(t *testing.T) {
	const text = "# Exit codes\n\nScripts can rely on `them`, and\non [this](x.md).\n\n| code | meaning |\n| --- | --- |\n" +
		"| 0 | done, or a word that is too long for the width |\n| 1 | a \\| b |\n\n```\nkappactl  x\n```\n- one\n  more\n- two\n"
	want := "EXIT CODES\n\nScripts can rely on them, and\non this.\n\n  code\n      meaning\n" +
		"  0\n      done, or a word that is\n      too long for the width\n  1\n      a | b\n\n    kappactl  x\n- one more\n- two\n"
	if diff := cmp.Diff(want, render.Markdown(text, render.Style{Width: 30})); diff != "" {
		t.Error(diff)
	}
}
