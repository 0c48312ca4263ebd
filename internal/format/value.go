package format

// value reads any value. depth is the number of arrays and objects around it.
func (s *scanner) value(depth int) *Reject {
	switch c := s.peek(); {
	case c == '"':
		s.i++
		_, r := s.str()
		return r
	case c == '-' || c >= '0' && c <= '9':
		return s.number()
	case c == '{':
		return s.object(depth + 1)
	case c == '[':
		return s.array(depth + 1)
	case c == 't':
		return s.word("true")
	case c == 'f':
		return s.word("false")
	case c == 'n':
		return s.word("null")
	}
	return s.fail("no JSON value")
}

func (s *scanner) object(depth int) *Reject {
	if depth > maxDepth {
		return s.fail("nested too deep")
	}
	s.i++
	s.space()
	if s.peek() == '}' {
		s.i++
		return nil
	}
	for {
		if s.peek() != '"' {
			return s.fail("no field name in quotes")
		}
		s.i++
		if _, r := s.str(); r != nil {
			return r
		}
		s.space()
		if s.peek() != ':' {
			return s.fail("no colon after a field name")
		}
		s.i++
		s.space()
		if r := s.value(depth); r != nil {
			return r
		}
		if done, r := s.more('}'); done || r != nil {
			return r
		}
	}
}

func (s *scanner) array(depth int) *Reject {
	if depth > maxDepth {
		return s.fail("nested too deep")
	}
	s.i++
	s.space()
	if s.peek() == ']' {
		s.i++
		return nil
	}
	for {
		if r := s.value(depth); r != nil {
			return r
		}
		if done, r := s.more(']'); done || r != nil {
			return r
		}
	}
}

// more reads what follows a member: a comma, or the end.
func (s *scanner) more(end byte) (done bool, r *Reject) {
	s.space()
	switch s.peek() {
	case ',':
		s.i++
		s.space()
		return false, nil
	case end:
		s.i++
		return true, nil
	}
	return false, s.fail("neither comma nor end after a value")
}

func (s *scanner) word(w string) *Reject {
	if end := s.i + len(w); end <= len(s.b) && string(s.b[s.i:end]) == w {
		s.i = end
		return nil
	}
	return s.fail("no JSON value")
}

// number reads -? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?
func (s *scanner) number() *Reject {
	b, i := s.b, s.i
	if b[i] == '-' {
		i++
	}
	from := i
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	ok := i > from && (b[from] != '0' || i == from+1)
	if i < len(b) && b[i] == '.' {
		i++
		from = i
		for i < len(b) && b[i]-'0' <= 9 {
			i++
		}
		ok = ok && i > from
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		from = i
		for i < len(b) && b[i]-'0' <= 9 {
			i++
		}
		ok = ok && i > from
	}
	if !ok {
		return s.fail("a number that is not JSON")
	}
	s.i = i
	return nil
}
