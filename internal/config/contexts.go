package config

import (
	"go.yaml.in/yaml/v3"

	"github.com/kappactl/kappactl/internal/job/strict"
	"github.com/kappactl/kappactl/internal/yamledit"
)

// ContextInfo is one context of a settings file.
type ContextInfo struct {
	Name    string   `json:"name"`
	Current bool     `json:"current"` // commands without --context use it
	Brokers []string `json:"brokers"`
	DSN     string   `json:"dsn"` // without a password; empty: the PG* variables say it all
	Schema  string   `json:"schema"`
}

// Contexts lists the contexts of the settings file that counts, by name. It is a *job.Refusal when there is no such
// file.
func Contexts(flags Flags, e Env) ([]ContextInfo, error) {
	f, err := contextFile(flags, e)
	if err != nil {
		return nil, err
	}
	wanted, _ := wantedContext(flags, e)
	chosen, err := f.choose(wanted, "")
	current := ""
	if err == nil { // else none of them is current
		current = chosen.Context
	}
	var out []ContextInfo
	for _, name := range f.names() {
		s := f.contexts[name]
		if err := s.fillDefaults(Env{}); err != nil {
			return nil, err
		}
		out = append(out, ContextInfo{
			Name: name, Current: name == current, Brokers: append([]string{}, s.Brokers...), DSN: s.DSN.String(),
			Schema: s.Schema,
		})
	}
	return out, nil
}

func contextFile(flags Flags, e Env) (*file, error) {
	path, _ := e.settingsFile(flags)
	if path == "" {
		return nil, usage("there is no settings file, so there are no contexts",
			"name one with --config, or write ./kappactl.yaml; kappactl dev makes one")
	}
	return readFile(path)
}

// UseContext makes a context the current one of the settings file that counts: it writes the key current; other keys
// and comments stay. Readers see the old file or the whole new one. It returns the file's path and the context that was
// current.
func UseContext(flags Flags, e Env, name string) (path, before string, err error) {
	f, err := contextFile(flags, e)
	if err != nil {
		return "", "", err
	}
	if f.contexts[name] == nil {
		return "", "", usage("there is no context "+name+" in "+f.path, strict.Suggest(name, f.names()))
	}
	if f.current == name {
		return f.path, f.current, nil
	}
	return f.path, f.current, edit(f.path, func(root *yaml.Node) error { return yamledit.PutFirst(root, "current", name) })
}
