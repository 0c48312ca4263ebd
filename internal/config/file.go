package config

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/job/strict"
)

// file is a settings file.
type file struct {
	path     string
	current  string
	contexts map[string]*Settings
	common   Settings // what the file has once for all contexts
	doc      *strict.Document
}

// readFile reads a settings file. Its faults are job.Problems, without excerpts: a line may hold a secret.
func readFile(path string) (*file, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		cause := err.Error()
		var pathError *fs.PathError
		if errors.As(err, &pathError) {
			cause = pathError.Err.Error()
		}
		return nil, job.Problems{{
			File: path, Cause: "settings cannot be read: " + cause,
			Cure: "give the path of a settings file with --config or KAPPACTL_CONFIG",
		}}
	}
	f := &file{path: path, contexts: map[string]*Settings{}}
	f.doc = strict.Read(text, f.keys())
	if len(f.doc.Faults) == 0 {
		f.rules()
	}
	if len(f.doc.Faults) > 0 {
		return nil, f.problems()
	}
	f.absolute()
	return f, nil
}

func (f *file) problems() job.Problems {
	var ps job.Problems
	for _, fault := range f.doc.Faults {
		cure := fault.Cure
		if i := slices.IndexFunc(Table(), func(o Setting) bool { return misplaced(o, fault.Path) }); i >= 0 {
			cure = "move it to its place: contexts: {NAME: {" + fault.Path + ": …}}"
			if Table()[i].OfAgent() {
				cure = "move it to its place: agent: {" + fault.Path + ": …}"
			}
		}
		ps = append(ps, job.Problem{
			File: f.path, Line: fault.Line, Column: fault.Column, Path: redact(fault.Path), Cause: redact(fault.Cause),
			Cure: cure,
		})
	}
	return ps
}

// misplaced reports whether a key at the top of the file belongs to a setting below a context or below agent.
func misplaced(o Setting, key string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(o.Name, "agent."), ".")
	return first == key
}

func (f *file) keys() strict.Value {
	contexts := strict.Named("mapping of context names to settings",
		func(_ *strict.Document, name, _ string, _ *yaml.Node) (strict.Value, bool) {
			s := &Settings{Context: name}
			f.contexts[name] = s
			return contextKeys(s), true
		})
	contexts.Keys = []strict.Key{{Name: "NAME", Value: contextKeys(&Settings{})}}
	return strict.Mapping(
		strict.Key{Name: "current", Value: strict.Text(&f.current)},
		strict.Key{Name: "contexts", Required: true, Value: contexts},
		strict.Key{Name: "agent", Value: keysBelow(table(&f.common), "agent.", nil)},
	)
}

// rules are checks of the mappings of a context, by name.
type rules map[string]func(d *strict.Document, path string)

func contextKeys(s *Settings) strict.Value {
	ofContext := slices.DeleteFunc(table(s), Setting.OfAgent)
	return keysBelow(ofContext, "", rules{
		"": func(d *strict.Document, path string) {
			if s.Password.File != "" && len(s.Password.Command) > 0 {
				d.RefuseAt(path+".dsn_password_command", "both dsn_password_file and dsn_password_command", "keep one of the two")
			}
		},
		"kafka.tls": func(d *strict.Document, path string) {
			s.Kafka.TLS.Enabled = true
			if t := s.Kafka.TLS; (t.CertFile == "") != (t.KeyFile == "") {
				d.RefuseAt(path, "one of cert_file and key_file is missing", "write both or neither")
			}
		},
		"kafka.sasl": func(d *strict.Document, path string) {
			if p := s.Kafka.SASL.Password; p.File != "" && len(p.Command) > 0 {
				d.RefuseAt(path, "both password_file and password_command", "keep one of the two")
			}
		},
		"archive.s3": func(d *strict.Document, path string) {
			if p := s.Archive.S3.Secret; p.File != "" && len(p.Command) > 0 {
				d.RefuseAt(path, "both secret_access_key_file and secret_access_key_command", "keep one of the two")
			}
		},
	})
}

// keysBelow is the mapping of the settings whose names begin with prefix, nested at the dots of the names.
func keysBelow(settings []Setting, prefix string, check rules) strict.Value {
	var keys []strict.Key
	for _, o := range settings {
		rest, found := strings.CutPrefix(o.Name, prefix)
		name, _, nested := strings.Cut(rest, ".")
		if !found || o.noFile || slices.ContainsFunc(keys, func(k strict.Key) bool { return k.Name == name }) {
			continue
		}
		key := strict.Key{Name: name, Required: o.required, Value: o.value.key}
		if nested {
			key = strict.Key{Name: name, Value: keysBelow(settings, prefix+name+".", check)}
		}
		keys = append(keys, key)
	}
	v := strict.Mapping(keys...)
	if rule := check[strings.TrimSuffix(prefix, ".")]; rule != nil {
		return strict.Then(v, rule)
	}
	return v
}

// rules checks what one value alone cannot show.
func (f *file) rules() {
	f.hookRules()
	if f.current != "" && f.contexts[f.current] == nil {
		f.doc.RefuseAt("current", "there is no context "+f.current, strict.Suggest(f.current, f.names()))
	}
}

func (f *file) names() []string {
	return slices.Sorted(maps.Keys(f.contexts))
}

// absolute makes the paths in the file relative to the file.
func (f *file) absolute() {
	dir := filepath.Dir(f.path)
	var paths []*string
	for i := range f.common.Hooks {
		paths = append(paths, &f.common.Hooks[i].Secret.File)
	}
	for _, s := range append(slices.Collect(maps.Values(f.contexts)), &f.common) {
		s.DSN = s.DSN.relativeTo(dir)
		for _, o := range table(s) {
			if o.value.path != nil {
				paths = append(paths, o.value.path)
			}
		}
	}
	for _, p := range paths {
		if *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(dir, *p)
		}
	}
}

// choose is the context that wanted names, or current, or the only one.
func (f *file) choose(wanted, origin string) (*Settings, error) {
	name := wanted
	if name == "" {
		name = f.current
	}
	if name == "" && len(f.contexts) == 1 {
		name = f.names()[0]
	}
	if s := f.contexts[name]; s != nil {
		return s, nil
	}
	all := strings.Join(f.names(), ", ")
	if name == "" {
		return nil, usage("the settings in "+f.path+" have several contexts and none is current",
			"choose one with --context: "+all)
	}
	return nil, usage(origin+": there is no context "+name+" in "+f.path, strict.Suggest(name, f.names()))
}
