package job

import (
	"fmt"
	"slices"
	"strings"
)

// TableName is the name by which serve.table calls the version's table.
const TableName = "$table"

// TableLayout is the layout of a job whose program writes the table that serve.table defines; what is wrong with the
// definition is Problems.
func (s *Spec) TableLayout() (Layout, error) {
	p := tableParser{scan: sqlScanner{rest: s.Serve.Table}, text: s.Serve.Table}
	p.advance()
	if !p.table() {
		return Layout{}, Problems{s.ProblemAt("serve.table", p.fault.at, PostgreSQL, p.fault.cause, p.fault.cure)}
	}
	l := Layout{Shape: Written, Where: s.Serve.Where, Indexes: s.Serve.Indexes}
	for _, name := range p.key {
		c := p.columns[slices.IndexFunc(p.columns, func(c Column) bool { return c.Name == name })]
		l.Keys = append(l.Keys, KeyColumn{Name: c.Name, Type: storedType(c.Type)})
	}
	for _, c := range p.columns {
		quoted := `"` + strings.ReplaceAll(c.Name, `"`, `""`) + `"`
		v := ViewColumn{Name: c.Name, Type: c.Type, Finish: "s." + quoted, StoredAs: "value", Exact: true}
		if v.Key = slices.Contains(p.key, c.Name); v.Key {
			v.StoredAs = "key"
		} else {
			l.States = append(l.States, StateColumn{
				Name: c.Name, Type: storedType(c.Type), Combine: "e." + quoted, Aggregate: "(array_agg(e." + quoted + "))[1]",
			})
		}
		l.View = append(l.View, v)
	}
	return s.withServed(l)
}

// withServed adds serve.columns to the layout and refuses settings of serve that do not fit the table.
func (s *Spec) withServed(l Layout) (Layout, error) {
	var ps Problems
	names := l.ViewNames()
	for i, index := range l.Indexes {
		for _, name := range index {
			if !contains(names, name) {
				ps = append(ps, s.Problem(fmt.Sprintf("serve.indexes[%d]", i), "",
					fmt.Sprintf("%q is not a column of serve.table", name),
					"name columns of serve.table: "+strings.Join(names, ", ")))
			}
		}
	}
	for _, c := range s.Serve.Columns {
		if contains(names, c.Name) {
			ps = append(ps, s.Problem("serve.columns."+c.Name, "", fmt.Sprintf("serve.table already has a column %q", c.Name),
				"give the computed column another name"))
		}
		l.View = append(l.View, ViewColumn{Name: c.Name, Finish: c.Expr, StoredAs: "computed", Exact: true, Computed: true})
	}
	if len(ps) > 0 {
		return l, ps
	}
	return l, nil
}

// storedType is a type as tables of versions have it: texts compare by their bytes.
func storedType(pg string) string {
	if pg == "text" || strings.HasPrefix(pg, "character varying") {
		return pg + ` COLLATE "C"`
	}
	return pg
}

// tableParser reads CREATE TABLE $table (…) with columns, NOT NULL and one PRIMARY KEY, and nothing else: agents make
// the table with rights of their own, so a definition may hold no expression.
type tableParser struct {
	scan sqlScanner
	text string
	tok  string // the current token; empty at the end
	at   int    // its byte offset

	columns []Column
	key     []string
	fault   struct {
		at          int
		cause, cure string
	}
}

const tableForm = "write CREATE TABLE $table (NAME TYPE [NOT NULL], …, PRIMARY KEY (NAME, …))"

func (p *tableParser) advance() {
	t, _ := p.scan.next()
	p.tok = t.text
	p.at = len(p.text) - len(p.scan.rest) - len(t.text)
}

func (p *tableParser) refuse(cause, cure string) bool {
	if p.fault.cause == "" {
		p.fault.at, p.fault.cause, p.fault.cure = p.at, cause, cure
	}
	return false
}

// take passes over words, whatever their case.
func (p *tableParser) take(words ...string) bool {
	for _, w := range words {
		if !strings.EqualFold(p.tok, w) {
			found := fmt.Sprintf("found %q", p.tok)
			if p.tok == "" {
				found = "the text ends"
			}
			return p.refuse(fmt.Sprintf("%s where %s is expected", found, w), tableForm)
		}
		p.advance()
	}
	return true
}

func (p *tableParser) is(word string) bool { return strings.EqualFold(p.tok, word) }

// name passes over an identifier and returns it as PostgreSQL stores it.
func (p *tableParser) name() (string, bool) {
	t := p.tok
	switch {
	case strings.HasPrefix(t, `"`) && len(t) > 2:
		t = strings.ReplaceAll(t[1:len(t)-1], `""`, `"`)
	case wordToken.FindString(t) == t && t != "":
		t = strings.ToLower(t)
	default:
		return "", p.refuse(fmt.Sprintf("%q is no column name", p.tok), tableForm)
	}
	if name, err := columnName(t); err != nil || strings.HasPrefix(t, "_") {
		return "", p.refuse(fmt.Sprintf("%q cannot be the name of a column here", t),
			"write letters, digits and _, beginning with a letter")
	} else if name != t {
		return "", p.refuse(fmt.Sprintf("%q cannot be the name of a column here", t), "write "+name)
	}
	p.advance()
	return t, true
}

func (p *tableParser) table() bool {
	if !p.take("CREATE", "TABLE") || !p.placeholder() || !p.take("(") {
		return false
	}
	for {
		if p.is("PRIMARY") {
			if !p.primaryKey() {
				return false
			}
		} else if !p.column() {
			return false
		}
		if !p.is(",") {
			break
		}
		p.advance()
	}
	if !p.take(")") {
		return false
	}
	if p.is(";") {
		p.advance()
	}
	switch {
	case p.tok != "":
		return p.refuse(fmt.Sprintf("found %q behind the definition", p.tok), tableForm)
	case len(p.key) == 0:
		return p.refuse("the table has no PRIMARY KEY", "add PRIMARY KEY (NAME, …): versions are compared by it")
	}
	return p.known()
}

// placeholder passes over $table, which the scanner gives as one token or as two.
func (p *tableParser) placeholder() bool {
	if p.tok == "$" {
		p.advance()
		return p.take("table")
	}
	return p.take(TableName)
}

// known refuses a key of columns that the table does not have.
func (p *tableParser) known() bool {
	for _, k := range p.key {
		if !slices.ContainsFunc(p.columns, func(c Column) bool { return c.Name == k }) {
			return p.refuse(fmt.Sprintf("PRIMARY KEY names %q, which is no column of the table", k), tableForm)
		}
	}
	return true
}

func (p *tableParser) primaryKey() bool {
	if len(p.key) > 0 {
		return p.refuse("the table has two PRIMARY KEYs", "keep one of the two")
	}
	if !p.take("PRIMARY", "KEY", "(") {
		return false
	}
	for {
		name, ok := p.name()
		if !ok {
			return false
		}
		if contains(p.key, name) {
			return p.refuse(fmt.Sprintf("PRIMARY KEY names %q twice", name), "keep one of the two")
		}
		p.key = append(p.key, name)
		if !p.is(",") {
			return p.take(")")
		}
		p.advance()
	}
}

func (p *tableParser) column() bool {
	name, ok := p.name()
	if !ok {
		return false
	}
	if slices.ContainsFunc(p.columns, func(c Column) bool { return c.Name == name }) {
		return p.refuse(fmt.Sprintf("column %q occurs twice", name), "keep one of the two")
	}
	at, words := p.at, []string(nil)
	for depth := 0; p.tok != "" && (depth > 0 || !p.is(",") && !p.is(")") && !p.is("NOT") &&
		!p.is("PRIMARY")); p.advance() {
		switch p.tok {
		case "(":
			depth++
		case ")":
			depth--
		}
		words = append(words, p.tok)
	}
	typ, err := ParseType(strings.Join(words, " "))
	if err != nil {
		p.at = at
		return p.refuse(fmt.Sprintf("column %q: %v", name, err),
			"give NAME TYPE [NOT NULL], of the types of source.columns (docs/job-file.md)")
	}
	p.columns = append(p.columns, Column{Name: name, Type: typ})
	for {
		switch {
		case p.is("NOT"):
			if !p.take("NOT", "NULL") {
				return false
			}
		case p.is("PRIMARY"):
			if len(p.key) > 0 {
				return p.refuse("the table has two PRIMARY KEYs", "keep one of the two")
			}
			if !p.take("PRIMARY", "KEY") {
				return false
			}
			p.key = []string{name}
		default:
			return true
		}
	}
}
