package job

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNormalSQLKeepsLiteralsAndDropsLayout(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"layout", "SELECT  a,\n\tb\r\nFROM\vx ", "SELECT a , b FROM x"},
		{"line comment to the end", "a -- b", "a"},
		{"line comment ends at a newline", "a -- 'b\nc", "a c"},
		{"line comment ends at a carriage return, as in DuckDB", "1 AS a -- x\r , 2", "1 AS a , 2"},
		{"nested comment", "a /* b /* c */ d */ e", "a e"},
		{"open comment", "a /* b", "a"},
		{"no comment in a literal", "'--  a' '/*' ", "'--  a' '/*'"},
		{"no comment in a name", `"--  a"."/*"`, `"--  a" . "/*"`},
		{"doubled quotes", `'it''s  ' "a""  b"`, `'it''s  ' "a""  b"`},
		{"escape text", `e'a\'  -- b' c`, `e'a\'  -- b' c`},
		{"no escape in a plain text", `'a\' -- b`, `'a\'`},
		{"word that ends in e is no prefix", `type'a\' -- b`, `type 'a\'`},
		{"blob prefix sticks", "x'41' x '41'", "x'41' x '41'"},
		{"unicode prefix sticks", `u&'a  b' u & 'a'`, `u&'a  b' u & 'a'`},
		{"dollar quotes", "$$a -- 'b$$ $t$ $$  $t$ x", "$$a -- 'b$$ $t$ $$  $t$ x"},
		{"parameter is no dollar quote", "$1  + $2", "$ 1 + $ 2"},
		{"numbers", "1.e5  1. e5 .5 1_000 1e-3 1-3", "1.e5 1. e5 .5 1_000 1e-3 1 - 3"},
		{"operators stay whole", "a<=b a< =b a::int a<-1", "a <= b a < = b a :: int a <- 1"},
		{"comment after an operator", "a+--b\nc a+/*b*/c", "a + c a + c"},
		{"continued literal", "'a'\n'b' 'c' -- x\n'd'", "'a'\n'b' 'c'\n'd'"},
		{"unclosed", "a 'b  c", "a 'b  c"},
		{"names of other letters", "größe  + 名", "größe + 名"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := normalSQL(tt.text); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
			if again := normalSQL(normalSQL(tt.text)); again != normalSQL(tt.text) {
				t.Errorf("not stable: %q", again)
			}
		})
	}
}

func TestNormalSQLLosesOnlySpaceAndComments(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		"a", "e", "x", "'", `"`, "$$", "$t$", "--", "/*", "*/", "\n", "\r", " ", "1", ".", "+", "-", "&", "u&", "\\", "é", "(", ",", "$", "\x00",
	})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 30).Draw(t, "pieces"), "")
		s := sqlScanner{rest: text}
		total := 0
		for {
			s.blank()
			before := len(s.rest)
			token, ok := s.next()
			if !ok {
				break
			}
			if token.text == "" || before-len(s.rest) != len(token.text) || !strings.Contains(text, token.text) {
				t.Fatalf("token %q of %q", token.text, text)
			}
			total += len(token.text)
		}
		if total > len(text) {
			t.Fatalf("%d bytes of tokens from %q", total, text)
		}
		if once := normalSQL(text); normalSQL(once) != once {
			t.Fatalf("%q becomes %q, then %q", text, once, normalSQL(once))
		}
	})
}
