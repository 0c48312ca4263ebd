package render_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"testing"

	"github.com/kappactl/kappactl/internal/render"
)

// hostile is text that untrusted records may contain: a cleared screen, a title, a forged line, a C1 introducer, reversed text.
const hostile = "a\x1b[2Jb\x1b]0;title\x07c\rd\u009b2Je\u202efdp\u2028g\x1b[8mh"

func TestOnlyColoursReachATerminal(t *testing.T) {
	t.Parallel()
	const want = "a·[2Jb·]0;title·c·d·2Je·fdp·g\x1b[8mh\n\tü日本"
	for _, size := range []int{1, 2, 3, 100} { // however the text is cut into writes
		var out bytes.Buffer
		w := render.Guard(&out, false)
		text := []byte(hostile + "\n\tü日本")
		for len(text) > 0 {
			n := min(size, len(text))
			if size < 6 { // a colour is written at once, so cut elsewhere
				if i := bytes.Index(text, []byte("\x1b[8m")); i == 0 {
					n = 4
				} else if i > 0 {
					n = min(n, i)
				}
			}
			if _, err := w.Write(text[:n]); err != nil {
				t.Fatal(err)
			}
			text = text[n:]
		}
		if out.String() != want {
			t.Errorf("in writes of %d bytes: got %q, want %q", size, out.String(), want)
		}
	}
}

func TestJSONKeepsEveryCharacterAsAnEscape(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	text, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(render.Guard(&out, true), "%s\n", text); err != nil {
		t.Fatal(err)
	}
	for _, r := range out.String() {
		if r != '\n' && (r < ' ' || r == 0x9b || r == 0x202e || r == 0x2028) {
			t.Errorf("%q reaches the terminal", r)
		}
	}
	var back string
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back != hostile {
		t.Errorf("read back %q, %v", back, err)
	}
}

func TestAGuardPassesErrorsOn(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	_ = r.Close()
	if _, err := render.Guard(w, false).Write([]byte("x")); err == nil {
		t.Error("no error")
	}
}
