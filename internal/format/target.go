package format

import "github.com/kappactl/kappactl/internal/job"

// target is a place inside a record's value that the job declares: the columns that take the value there, and further
// places inside it.
type target struct {
	path    []job.Step
	columns []int              // columns that take the value
	below   []int              // columns of the places inside it
	members map[string]*target // by name, if the value is an object
	items   map[int]*target    // by index, if the value is an array
	one     bool               // one column takes the value, and no place is inside it
	column  int                // that column

	learned []learned // the members of earlier records in their order: most records resemble the previous one
}

// learned is the name of a member that earlier records had at a position. Only plain ASCII names are learned.
type learned struct {
	name   string
	target *target // nil if it is not declared
}

// newTarget returns the target of the whole record value; places are those of the columns.
func newTarget(places [][]job.Step) *target {
	root := &target{}
	for column, steps := range places {
		t := root
		for i, step := range steps {
			t.below = append(t.below, column)
			t = t.child(step, steps[:i+1])
		}
		t.columns = append(t.columns, column)
	}
	root.settle()
	return root
}

// child returns the place one step inside t.
func (t *target) child(step job.Step, path []job.Step) *target {
	if step.Index >= 0 {
		if t.items == nil {
			t.items = map[int]*target{}
		}
		if t.items[step.Index] == nil {
			t.items[step.Index] = &target{path: path}
		}
		return t.items[step.Index]
	}
	if t.members == nil {
		t.members = map[string]*target{}
	}
	if t.members[step.Name] == nil {
		t.members[step.Name] = &target{path: path}
	}
	return t.members[step.Name]
}

func (t *target) settle() {
	if t.one = len(t.below) == 0 && len(t.columns) == 1; t.one {
		t.column = t.columns[0]
	}
	for _, inside := range t.members {
		inside.settle()
	}
	for _, inside := range t.items {
		inside.settle()
	}
}

// enter reads the value at t for its columns and the columns inside it. If a name is repeated, its last value replaces
// the earlier ones as a whole.
func (s *scanner) enter(t *target) *Reject {
	for _, column := range t.below {
		s.spans[column] = span{}
	}
	v := span{kind: s.peek(), from: s.i}
	var r *Reject
	switch {
	case v.kind == '{' && t.members != nil:
		s.enters(t)
		s.i++
		r = s.fields(t)
		v.to = s.i
	case v.kind == '[' && t.items != nil:
		s.layouts.learning = false
		s.i++
		r = s.elements(t)
		v.to = s.i
	default:
		s.layouts.learning = false
		if r = s.keep(&v, len(t.path)); r == nil && v.kind != 'n' && len(t.below) > 0 {
			s.stray(t, v)
		}
	}
	for _, column := range t.columns {
		s.spans[column] = v
	}
	return r
}

// elements reads the elements of the array at t, after its bracket.
func (s *scanner) elements(t *target) *Reject {
	s.space()
	if s.peek() == ']' {
		s.i++
		return nil
	}
	for n := 0; ; n++ {
		if r := s.inside(t.items[n], len(t.path)+1); r != nil {
			return r
		}
		if done, r := s.more(']'); done || r != nil {
			return r
		}
	}
}

// inside reads a value inside depth objects and arrays. t is its place, or nil if the job does not declare it.
func (s *scanner) inside(t *target, depth int) (r *Reject) {
	from := s.i
	switch {
	case t == nil:
		r = s.value(depth)
	case t.one:
		r = s.keep(&s.spans[t.column], depth)
	default:
		return s.enter(t)
	}
	if s.layouts.learning {
		s.mark(from, t, depth)
	}
	return r
}

// stray notes that v, the value at t, cannot contain the places inside t, because it is neither null nor the object or
// array that they need.
func (s *scanner) stray(t *target, v span) {
	for _, column := range t.below {
		s.spans[column] = span{kind: kindOfStray}
	}
	s.strays = append(s.strays, stray{t, v})
}

// stray is a value that cannot contain the places of target.
type stray struct {
	target *target
	value  span
}

// kindOfStray is the kind of a span whose place lies inside a value that is not an object or array.
const kindOfStray = 's'

// judgeStrays rejects a record that has a stray value, and returns the column. It runs after the whole record was read,
// because a later field of the same name may replace the value.
func (s *scanner) judgeStrays() (column int, r *Reject) {
	for _, at := range s.strays {
		if column = at.target.below[0]; s.spans[column].kind != kindOfStray {
			continue
		}
		want := "an object"
		if at.target.members == nil {
			want = "an array"
		}
		v := at.value
		text := s.b[v.from:v.to]
		return column, wrong(want+" at "+job.PathText(at.target.path), text, v).fix(fixOfStray(v.kind, text, at.target.path))
	}
	return 0, nil
}
