package job

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/kappactl/kappactl/internal/job/strict"
)

// Read reads the job file at path. A file that cannot be read or is wrong is Problems.
func Read(path string) (*Spec, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, Problems{{File: path, Cause: unreadable(err), Cure: "give the path of a job file"}}
	}
	return Parse(path, text)
}

func unreadable(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return "cannot be read: " + path.Err.Error()
	}
	return "cannot be read: " + err.Error()
}

// Parse reads the text of a job file; file is its name in Problems, which list every fault of the text.
func Parse(file string, text []byte) (*Spec, error) {
	s := defaults()
	s.File, s.Text = file, text
	doc := strict.Read(text, specKeys(s))
	if len(doc.Faults) == 0 {
		rules(s, doc)
	}
	s.places = placesOf(doc)
	if len(doc.Faults) > 0 {
		ps := make(Problems, len(doc.Faults))
		for i, f := range doc.Faults {
			ps[i] = s.problem(f)
		}
		return nil, ps
	}
	return s, nil
}

// The defaults of a check.
const (
	DefaultCheckEvery   = time.Minute
	DefaultCheckTimeout = 30 * time.Second
)

// defaults is the job file that says nothing.
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

// Keys lists the path and the type of every key that a job file may have; [] stands for the items of a list. The
// reference and the tests are kept in step with it.
func Keys() []KeyInfo { return keysOf(specKeys(defaults()), "") }

// KeyInfo describes one key of the job file.
type KeyInfo struct {
	Path     string // source.on_error, checks[].name
	Type     string
	Required bool // within the mapping that it stands in
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

// rules checks what one value alone cannot show; it runs on files whose values are all right.
func rules(s *Spec, d *strict.Document) {
	if s.Serve.OrderBy != "" && len(s.Serve.Key) == 0 {
		d.RefuseAt("serve.order_by", "order_by without a key", "add serve.key, or remove order_by: it decides which record of a key is the latest")
	}
	if n := versionTable(s.Job, s.Serve.View.Name); n {
		d.RefuseAt("serve.view", fmt.Sprintf("the name %s is kept for a version's table", s.Serve.View.Name), "give the view a name that does not begin with "+string(s.Job)+"__")
	}
	if cause := rawColumn(s.Source); cause != "" {
		d.RefuseAt("source.columns", cause, "declare one column of type text, bytea, json or jsonb: it takes the whole value")
	}
	for i, t := range s.Tests {
		for j, g := range t.Given {
			if g.Topic != "" && !contains(s.Source.Topics, g.Topic) {
				d.RefuseAt(fmt.Sprintf("tests[%d].given[%d].topic", i, j), fmt.Sprintf("the job does not read topic %q", g.Topic), "name one of source.topics")
			}
		}
	}
	for at := range s.Replay.Offsets {
		if topic, _ := cutPartition(at); !contains(s.Source.Topics, topic) {
			d.RefuseAt("replay.start.offsets."+at, fmt.Sprintf("the job does not read topic %q", topic), "name a partition of a topic of source.topics, as TOPIC/PARTITION")
		}
	}
}

// rawColumn says why the columns cannot take a whole value, for format raw.
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
