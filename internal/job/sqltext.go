package job

import (
	"regexp"
	"strings"
)

// normalSQL is a DuckDB text without comments and with one space between tokens, so that two texts that differ in
// layout only are equal. It errs on the side of a difference: two texts that mean different things are never made
// equal.
func normalSQL(text string) string {
	var b strings.Builder
	s := sqlScanner{rest: text}
	last := token{}
	for {
		t, ok := s.next()
		if !ok {
			return b.String()
		}
		switch {
		case b.Len() == 0:
		case t.literal && last.literal && t.newline:
			// 'a' and 'b' on two lines are one literal; on one line they are a syntax error.
			b.WriteByte('\n')
		default:
			b.WriteByte(' ')
		}
		b.WriteString(t.text)
		last = t
	}
}

// token is a piece of SQL that white space cannot be put into without changing it.
type token struct {
	text    string
	literal bool // a quoted text that a following one on another line continues
	newline bool // a line ended between this token and the one before it
}

// sqlScanner cuts a SQL text into tokens as PostgreSQL's and DuckDB's lexers do.
type sqlScanner struct{ rest string }

var (
	dollarTag   = regexp.MustCompile(`^\$(?:[A-Za-z_\x{80}-\x{10ffff}][0-9A-Za-z_\x{80}-\x{10ffff}]*)?\$`)
	wordToken   = regexp.MustCompile(`^[A-Za-z_\x{80}-\x{10ffff}][0-9A-Za-z_$\x{80}-\x{10ffff}]*`)
	numberToken = regexp.MustCompile(`^(?:[0-9]|\.[0-9])(?:[eE][-+][0-9]|[0-9A-Za-z_.\x{80}-\x{10ffff}])*`)
	prefixWord  = regexp.MustCompile(`^(?:[bBxXnNeE]|[uU]&)['"]`)
)

func (s *sqlScanner) next() (token, bool) {
	newline := s.blank()
	if s.rest == "" {
		return token{}, false
	}
	n, literal := s.measure()
	t := token{text: s.rest[:n], literal: literal, newline: newline}
	s.rest = s.rest[n:]
	return t, true
}

// blank skips white space and comments and reports whether a line ended in them.
func (s *sqlScanner) blank() (newline bool) {
	for s.rest != "" {
		n := 0
		switch c := s.rest[0]; {
		case strings.IndexByte(" \t\n\r\f\v", c) >= 0:
			n = 1
		case strings.HasPrefix(s.rest, "--"):
			// DuckDB ends the comment at a carriage return too.
			if n = strings.IndexAny(s.rest, "\r\n"); n < 0 {
				n = len(s.rest)
			}
		case strings.HasPrefix(s.rest, "/*"):
			n = blockComment(s.rest)
		default:
			return newline
		}
		newline = newline || strings.ContainsAny(s.rest[:n], "\r\n")
		s.rest = s.rest[n:]
	}
	return newline
}

// blockComment is the length of the comment that s begins with; comments nest.
func blockComment(s string) int {
	depth := 0
	for i := 0; i < len(s); {
		switch {
		case strings.HasPrefix(s[i:], "/*"):
			depth, i = depth+1, i+2
		case strings.HasPrefix(s[i:], "*/"):
			depth, i = depth-1, i+2
		default:
			i++
		}
		if depth == 0 {
			return i
		}
	}
	return len(s)
}

// measure is the length of the token that the rest begins with.
func (s *sqlScanner) measure() (n int, literal bool) {
	rest := s.rest
	if prefix := prefixWord.FindString(rest); prefix != "" {
		quote := len(prefix) - 1
		// x"a" is a word and a name, which stay apart; only e, b, x and n before ' and u& before both belong to it.
		if rest[quote] == '\'' || quote == 2 {
			escapes := rest[0] == 'e' || rest[0] == 'E'
			return quote + quoted(rest[quote:], escapes), rest[quote] == '\''
		}
	}
	switch c := rest[0]; {
	case c == '\'' || c == '"':
		return quoted(rest, false), c == '\''
	case c == '$' && dollarTag.MatchString(rest):
		tag := dollarTag.FindString(rest)
		if end := strings.Index(rest[len(tag):], tag); end >= 0 {
			return len(tag) + end + len(tag), true
		}
		return len(rest), true
	case numberToken.MatchString(rest):
		return len(numberToken.FindString(rest)), false
	case wordToken.MatchString(rest):
		return len(wordToken.FindString(rest)), false
	case strings.IndexByte(operatorChars, c) >= 0:
		return operator(rest), false
	}
	return 1, false
}

// quoted returns the length of the literal or name that s begins with; a doubled quote represents itself.
func quoted(s string, escapes bool) int {
	quote := s[0]
	for i := 1; i < len(s); i++ {
		switch {
		case escapes && s[i] == '\\':
			i++
		case s[i] != quote:
		case i+1 < len(s) && s[i+1] == quote:
			i++
		default:
			return i + 1
		}
	}
	return len(s)
}

const operatorChars = "+-*/<>=~!@#%^&|`?:$"

// operator is the length of a run of operator characters; a comment ends it.
func operator(s string) int {
	for i := 1; i < len(s); i++ {
		if strings.IndexByte(operatorChars, s[i]) < 0 || strings.HasPrefix(s[i:], "--") || strings.HasPrefix(s[i:], "/*") {
			return i
		}
		// $ begins a quoted text or a parameter, never the inside of an operator.
		if s[i] == '$' {
			return i
		}
	}
	return len(s)
}
