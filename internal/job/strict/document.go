package strict

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// MaxBytes is the largest text that Read accepts. People write settings and job files.
const MaxBytes = 1 << 20

// Fault is one problem. Line and Column count from 1, columns in characters; 0 means unknown.
type Fault struct {
	Line, Column int
	Path         string // source.columns.ts, checks[1].sql; empty for the document as a whole
	Cause        string
	Cure         string
}

// Document is a parsed text with the place of every value in it.
type Document struct {
	Faults []Fault
	nodes  map[string]*yaml.Node
	homes  map[string][]string // by key name: the paths of the mappings that accept the key
}

// Read reads text, which must hold one YAML document, as root. Faults are in the order of the text.
func Read(text []byte, root Value) *Document {
	return ReadPrepared(text, root, func(*Document, *yaml.Node) {})
}

// ReadPrepared is Read with a function that may change or refuse values of the tree before root reads it. If there are
// faults after that, root reads nothing.
func ReadPrepared(text []byte, root Value, prepare func(*Document, *yaml.Node)) *Document {
	d := &Document{nodes: map[string]*yaml.Node{}, homes: map[string][]string{}}
	d.note(root.Keys, "")
	node := d.parse(text)
	if node != nil {
		prepare(d, node)
	}
	switch {
	case len(d.Faults) > 0:
	case node == nil, node.Kind == yaml.ScalarNode && node.Tag == "!!null": // only comments or ---
		d.fault(1, 1, "the file is empty", "write its keys: "+names(root.Keys))
	default:
		d.read(root, node, "")
	}
	slices.SortStableFunc(d.Faults, func(a, b Fault) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return d
}

// Node returns the YAML node of the value at path, or nil.
func (d *Document) Node(path string) *yaml.Node { return d.nodes[path] }

// Paths returns the paths of all values that were read.
func (d *Document) Paths() []string {
	paths := make([]string, 0, len(d.nodes))
	for path := range d.nodes {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

// Refuse records a fault at the place of n, which may be nil.
func (d *Document) Refuse(n *yaml.Node, path, cause, cure string) {
	f := Fault{Path: path, Cause: cause, Cure: cure}
	if n != nil {
		f.Line, f.Column = n.Line, n.Column
	}
	d.Faults = append(d.Faults, f)
}

// RefuseAt records a fault at the value of path, or at the closest existing value above it.
func (d *Document) RefuseAt(path, cause, cure string) { d.Refuse(d.nearest(path), path, cause, cure) }

func (d *Document) nearest(path string) *yaml.Node {
	for at := path; ; {
		if n := d.nodes[at]; n != nil {
			return n
		}
		cut := strings.LastIndexAny(at, ".[")
		if cut < 0 {
			return d.nodes[""]
		}
		at = at[:cut]
	}
}

// parse returns the node of the text, or records why it cannot be parsed. An empty text has no node and is not a fault
// here.
func (d *Document) parse(text []byte) *yaml.Node {
	switch {
	case len(text) > MaxBytes:
		d.fault(0, 0, fmt.Sprintf("the file holds %d bytes, more than %d", len(text), MaxBytes),
			"keep one job or one set of settings in a file")
		return nil
	case !utf8.Valid(text):
		line, column := invalidAt(text)
		d.fault(line, column, "the text is not valid UTF-8", "save the file as UTF-8")
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	switch err := decoder.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		d.syntax(text, err)
		return nil
	}
	if err := decoder.Decode(&more); err == nil {
		d.fault(more.Line, more.Column, "a second YAML document begins here",
			"keep one document in a file; remove the --- line and what follows")
		return nil
	} else if !errors.Is(err, io.EOF) {
		d.syntax(text, err)
		return nil
	}
	return doc.Content[0]
}

func (d *Document) fault(line, column int, cause, cure string) {
	d.Faults = append(d.Faults, Fault{Line: line, Column: column, Cause: cause, Cure: cure})
}

var syntaxLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// syntax turns the parser's error into a fault. The parser reports only the line.
func (d *Document) syntax(text []byte, err error) {
	m := syntaxLine.FindStringSubmatch(strings.ReplaceAll(err.Error(), "\n", " "))
	if m == nil {
		d.fault(0, 0, "not YAML: "+err.Error(), "")
		return
	}
	line := 1 // the parser omits the first line's number
	if n, err := strconv.Atoi(m[1]); err == nil {
		line = n
	}
	lines := bytes.Split(text, []byte("\n"))
	if line > len(lines) {
		line = len(lines)
	}
	line = brokenLine(lines, line)
	cure := "check this line and the one above: an indent, a quote, a colon or a bracket"
	if n := tabIndent(lines, line); n > 0 {
		line, cure = n, "indent with spaces; YAML does not allow tabs"
	}
	column := 1 + len(lines[line-1]) - len(bytes.TrimLeft(lines[line-1], " \t"))
	d.fault(line, column, "not YAML: "+m[2], cure)
}

// brokenLine returns the first line that makes the text invalid: the one after the longest valid run of lines from the
// top. The parser itself reports where the enclosing list or mapping started. Each trial stops at the fault and is
// therefore cheap.
func brokenLine(lines [][]byte, told int) int {
	const most = 1000
	if len(lines) > most {
		return told
	}
	for n := len(lines) - 1; n >= 0; n-- {
		if isYAML(bytes.Join(lines[:n], []byte("\n"))) {
			return n + 1
		}
	}
	return told
}

func isYAML(text []byte) bool {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var n yaml.Node
		if err := decoder.Decode(&n); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

// tabIndent returns the closest line to line (from 1) that is indented with a tab, or 0.
func tabIndent(lines [][]byte, line int) int {
	for at := max(1, line-1); at <= min(len(lines), line+1); at++ {
		indent := lines[at-1][:len(lines[at-1])-len(bytes.TrimLeft(lines[at-1], " \t"))]
		if bytes.ContainsRune(indent, '\t') && len(indent) < len(lines[at-1]) {
			return at
		}
	}
	return 0
}

func invalidAt(text []byte) (line, column int) {
	line, column = 1, 1
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if r == utf8.RuneError && n == 1 {
			break
		}
		column++
		if r == '\n' {
			line, column = line+1, 1
		}
		text = text[n:]
	}
	return line, column
}
