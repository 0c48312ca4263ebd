package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/vt"
)

// drawn is the picture of what a program wrote.
func drawn(t *testing.T, width, height int, wrote string) string {
	t.Helper()
	emu := vt.NewEmulator(width, height)
	if _, err := emu.WriteString(wrote); err != nil {
		t.Fatal(err)
	}
	out := svg(screen{width: width, height: height, at: func(x, y int) *uv.Cell { return emu.CellAt(x, y) }}, "a <title>", `about "it"`)
	for d := xml.NewDecoder(strings.NewReader(out)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatalf("not XML: %v\n%s", err, out)
		}
	}
}

func TestTextKeepsItsColourItsWeightAndItsWidth(t *testing.T) {
	out := drawn(t, 20, 2, "\x1b[1;38;2;1;2;3ma<b\x1b[0m  \x1b[32mgreen\x1b[0m")
	for _, want := range []string{
		`<text x="16" y="47.32" textLength="25.2" lengthAdjust="spacingAndGlyphs" fill="#010203" font-weight="700">a&lt;b</text>`,
		`fill="#7fc98b">green</text>`, `<title>about &#34;it&#34;</title>`, `a &lt;title&gt;`,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
}

func TestBlocksAndLinesAreShapesWithoutGaps(t *testing.T) {
	out := drawn(t, 10, 1, "███▌░░ ▂")
	for _, want := range []string{
		`<rect x="16" y="34" width="25.2" height="18" `, `<rect x="41.2" y="34" width="4.2" height="18" `,
		`opacity="0.25"`, `<rect x="74.8" y="47.5" width="8.4" height="4.5" `,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
	if strings.ContainsAny(out, "█░▌▂") {
		t.Errorf("a block is left to the font:\n%s", out)
	}
}
