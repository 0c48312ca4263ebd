package job

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/kappactl/kappactl/internal/job/strict"
)

// Read reads the job file at path, which has no variables but those with a default. A file that cannot be read or is
// wrong is Problems.
func Read(path string) (*Spec, error) {
	text, err := ReadText(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, text)
}

// ReadText reads the file at path. One that cannot be read is Problems.
func ReadText(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, Problems{{File: path, Cause: unreadable(err), Cure: "give the path of a file that can be read"}}
	}
	return text, nil
}

func unreadable(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return "cannot be read: " + path.Err.Error()
	}
	return "cannot be read: " + err.Error()
}

// Parse reads the text of a job file that has no variables but those with a default; file is its name in Problems,
// which list every fault of the text.
func Parse(file string, text []byte) (*Spec, error) { return ParseWith(file, text, Variables{}) }

// ParseWith reads the text of a job file and replaces its variables.
func ParseWith(file string, text []byte, vars Variables) (*Spec, error) {
	s := defaults()
	s.File, s.Text = file, text
	x := expander{Variables: vars, spec: s, nodes: map[*yaml.Node]expanded{}}
	var root *yaml.Node
	doc := strict.ReadPrepared(text, specKeys(s, engineOf(text)), func(d *strict.Document, n *yaml.Node) {
		x.doc, root = d, n
		x.tree(n, "")
	})
	if len(doc.Faults) == 0 {
		rules(s, doc)
	}
	s.places = placesOf(doc, x.nodes)
	if len(doc.Faults) > 0 {
		ps := make(Problems, len(doc.Faults))
		for i, f := range doc.Faults {
			ps[i] = s.problem(f)
		}
		return nil, ps
	}
	var err error
	s.Variables = x.names()
	s.Expanded, err = x.text(root, text)
	return s, err
}

// The defaults of a check.
const (
	DefaultCheckEvery   = time.Minute
	DefaultCheckTimeout = 30 * time.Second
)

// defaults returns the Spec of an empty job file.
func defaults() *Spec {
	return &Spec{
		Mode:       Kappa,
		Source:     Source{Format: "json", OnError: OnError{Max: 0.001}},
		Replay:     Replay{Start: StartEarliest},
		Live:       LiveSettings{Every: 250 * time.Millisecond},
		Ready:      ReadySettings{MaxLagTime: 5 * time.Second, StableFor: 10 * time.Second},
		KeepOld:    24 * time.Hour,
		AutoRetire: true,
	}
}

// Keys returns path and type of every key that a job file may have; [] marks the items of a list. Tests keep the
// reference in sync with it.
func Keys() []KeyInfo { return keysOf(specKeys(defaults(), SQL), "") }

// KeyInfo describes one key of the job file.
type KeyInfo struct {
	Path     string // source.on_error, checks[].name
	Type     string
	Required bool // within its mapping
}

func keysOf(v strict.Value, path string) []KeyInfo {
	if v.List {
		path += "[]"
	}
	var out []KeyInfo
	for _, k := range v.Keys {
		at := strict.Join(path, k.Name)
		out = append(out, KeyInfo{Path: at, Type: k.Value.Type, Required: k.Required})
		out = append(out, keysOf(k.Value, at)...)
	}
	return out
}

// rules checks conditions between several values. It runs only on files whose single values are valid.
func rules(s *Spec, d *strict.Document) {
	engineRules(s, d)
	if s.Serve.OrderBy != "" && len(s.Serve.Key) == 0 {
		d.RefuseAt("serve.order_by", "order_by without a key",
			"add serve.key, or remove order_by: it decides which record of a key is the latest")
	}
	if s.Source.OnError.SkipTombstones && len(s.Serve.Key) > 0 {
		d.RefuseAt("source.on_error.tombstones", "tombstones are skipped, and with serve.key they delete",
			"remove it: the tombstone of a key deletes its row")
	}
	if n := versionTable(s.Job, s.Serve.View.Name); n {
		d.RefuseAt("serve.view", fmt.Sprintf("the name %s is kept for a version's table", s.Serve.View.Name),
			"give the view a name that does not begin with "+string(s.Job)+"__")
	}
	if s.Mode == Lambda && s.Archive == nil {
		d.RefuseAt("mode", "lambda without an archive",
			"add archive: {location: file:///PATH}: batch generations are computed from it; or write mode: kappa")
	}
	if s.Replay.Source == SourceArchive && s.Archive == nil {
		d.RefuseAt("replay.source", "replay.source: archive without an archive",
			"add archive: {location: file:///PATH}, or write auto or log")
	}
	if cause := rawColumn(s.Source); cause != "" {
		d.RefuseAt("source.columns", cause, "declare one column of type text, bytea, json or jsonb: it takes the whole value")
	}
	noPaths(s.Source, d)
	for i, t := range s.Tests {
		for j, g := range t.Given {
			if g.Topic != "" && !contains(s.Source.Topics, g.Topic) {
				d.RefuseAt(fmt.Sprintf("tests[%d].given[%d].topic", i, j), fmt.Sprintf("the job does not read topic %q", g.Topic),
					"name one of source.topics")
			}
		}
	}
	for at := range s.Replay.Offsets {
		if topic, _ := cutPartition(at); !contains(s.Source.Topics, topic) {
			d.RefuseAt("replay.start.offsets."+at, fmt.Sprintf("the job does not read topic %q", topic),
				"name a partition of a topic of source.topics, as TOPIC/PARTITION")
		}
	}
}

// noPaths refuses paths in formats whose values have no fields with names.
func noPaths(s Source, d *strict.Document) {
	cure := "remove it; in csv a column is the field at its position, whatever its name"
	switch s.Format {
	case "json":
		return
	case "raw":
		cure = "remove it: the column is the whole value; or write format: json when values are JSON objects"
	}
	for _, c := range s.Columns {
		for _, key := range []string{".field", ".path"} {
			if at := "source.columns." + c.Name + key; d.Node(at) != nil {
				d.RefuseAt(at, "format "+s.Format+" has no fields with names", cure)
			}
		}
	}
}

// rawColumn returns why the columns cannot take a whole value, for format raw.
func rawColumn(s Source) string {
	if s.Format != "raw" {
		return ""
	}
	if len(s.Columns) != 1 {
		return fmt.Sprintf("format raw has %d columns", len(s.Columns))
	}
	switch base, _, _ := strings.Cut(s.Columns[0].Type, "("); base {
	case "text", "character varying", "bytea", "json", "jsonb":
		return ""
	}
	return "format raw with a column of type " + s.Columns[0].Type
}
