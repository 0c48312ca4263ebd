package format

import "bytes"

// nameSets finds names that occur twice in one object while a JSON text is read from its start.
type nameSets struct {
	names    [][]byte // of the open objects, without escapes
	open     []int    // for each open object, the index of its first name; -1 for an array
	repeated bool     // an object had a name twice
}

func (n *nameSets) reset() { n.names, n.open, n.repeated = n.names[:0], n.open[:0], false }

func (n *nameSets) inObject() bool { return len(n.open) > 0 && n.open[len(n.open)-1] >= 0 }

func (n *nameSets) add(name []byte) { n.names = append(n.names, name) }

// nest opens or closes an object or array at its bracket and ignores other characters.
func (n *nameSets) nest(bracket byte) {
	switch bracket {
	case '{':
		n.open = append(n.open, len(n.names))
	case '[':
		n.open = append(n.open, -1)
	case '}':
		first := n.open[len(n.open)-1]
		n.repeated = n.repeated || twice(n.names[first:])
		n.names = n.names[:first]
		n.open = n.open[:len(n.open)-1]
	case ']':
		n.open = n.open[:len(n.open)-1]
	}
}

// twice reports whether two of the names are equal.
func twice(names [][]byte) bool {
	const few = 32 // up to this number, comparing is faster than hashing
	if len(names) > few {
		return hashedTwice(names)
	}
	for i, name := range names {
		for _, other := range names[:i] {
			if len(name) == len(other) && bytes.Equal(name, other) {
				return true
			}
		}
	}
	return false
}

func hashedTwice(names [][]byte) bool {
	seen := make(map[string]struct{}, len(names))
	for _, name := range names {
		if _, twice := seen[string(name)]; twice {
			return true
		}
		seen[string(name)] = struct{}{}
	}
	return false
}

// isName reports whether the string before b, inside an object, is a name: a colon follows it.
func isName(b []byte) bool {
	i := skipSpace(b, 0)
	return i < len(b) && b[i] == ':'
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// lastOfEach appends the valid JSON value at b[i:] to out without members whose name recurs later in the same object,
// and without white space around the others. It returns out and the end of the value in b.
func lastOfEach(out, b []byte, i int) ([]byte, int) {
	switch b[i] {
	case '{':
		return lastMembers(append(out, '{'), b, i+1)
	case '[':
		out = append(out, '[')
		for i = skipSpace(b, i+1); b[i] != ']'; {
			out, i = lastOfEach(out, b, i)
			out, i = separator(out, b, i)
		}
		return append(out, ']'), i + 1
	}
	end := scalarEnd(b, i)
	return append(out, b[i:end]...), end
}

// lastMembers does the same for the members of an object, after its brace.
func lastMembers(out, b []byte, i int) ([]byte, int) {
	type member struct{ from, to int } // in out, with the comma after it
	var members []member
	at := map[string]int{} // members by name
	for i = skipSpace(b, i); b[i] != '}'; {
		end := scalarEnd(b, i)
		name, _ := unescape(nil, b[i+1:end-1])
		if before, twice := at[string(name)]; twice {
			members[before].to = members[before].from
		}
		from := len(out)
		out = append(append(out, b[i:end]...), ':')
		out, i = lastOfEach(out, b, skipSpace(b, skipSpace(b, end)+1))
		out, i = separator(out, b, i)
		at[string(name)] = len(members)
		members = append(members, member{from, len(out)})
	}
	kept := len(out)
	if len(members) > 0 {
		kept = members[0].from
	}
	for _, m := range members {
		kept += copy(out[kept:], out[m.from:m.to])
	}
	return append(out[:kept], '}'), i + 1
}

// separator skips a comma after a member or an element, and the space around it.
func separator(out, b []byte, i int) ([]byte, int) {
	if i = skipSpace(b, i); b[i] == ',' {
		return append(out, ','), skipSpace(b, i+1)
	}
	return out, i
}

// scalarEnd returns where the string, number or word at b[i:] ends.
func scalarEnd(b []byte, i int) int {
	if b[i] == '"' {
		n, _ := stringLength(b[i+1:])
		return i + n + 2
	}
	for i < len(b) && !bytes.ContainsRune([]byte(",]} \t\r\n"), rune(b[i])) {
		i++
	}
	return i
}
