package format

import (
	"bytes"
	"unicode/utf8"
)

// hex4 parses four hexadecimal digits; -1 if they are not. b holds four bytes.
func hex4(b []byte) rune {
	var r rune
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// unescape appends the characters of a JSON string whose escapes are known to be valid. ok is false if half of a
// surrogate pair occurs alone.
func unescape(to, raw []byte) (_ []byte, ok bool) {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return append(to, raw...), true
		}
		to = append(to, raw[:i]...)
		if raw[i+1] != 'u' {
			to = append(to, unescaped(raw[i+1]))
			raw = raw[i+2:]
			continue
		}
		r := hex4(raw[i+2:])
		raw = raw[i+6:]
		if r >= 0xD800 && r < 0xE000 {
			if r >= 0xDC00 || len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
				return to, false
			}
			low := hex4(raw[2:])
			if low < 0xDC00 || low >= 0xE000 {
				return to, false
			}
			r = 0x10000 + (r-0xD800)<<10 + (low - 0xDC00)
			raw = raw[6:]
		}
		to = utf8.AppendRune(to, r)
	}
}

func unescaped(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
