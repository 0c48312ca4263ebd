package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/job/strict"
)

// file is a settings file.
type file struct {
	path     string
	current  string
	contexts map[string]*Settings
	agent    Agent
	hooks    []Hook
	webhooks []Hook
	doc      *strict.Document
}

// readFile reads a settings file. What is wrong with it comes as job.Problems, without excerpts: a line may hold a secret.
func readFile(path string) (*file, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		cause := err.Error()
		var pathError *fs.PathError
		if errors.As(err, &pathError) {
			cause = pathError.Err.Error()
		}
		return nil, job.Problems{{File: path, Cause: "settings cannot be read: " + cause, Cure: "give the path of a settings file with --config or KAPPACTL_CONFIG"}}
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
		ps = append(ps, job.Problem{
			File: f.path, Line: fault.Line, Column: fault.Column, Path: redact(fault.Path), Cause: redact(fault.Cause), Cure: fault.Cure,
		})
	}
	return ps
}

func (f *file) keys() strict.Value {
	contexts := strict.Named("mapping of context names to settings", func(_ *strict.Document, name, _ string, _ *yaml.Node) (strict.Value, bool) {
		s := &Settings{Context: name}
		f.contexts[name] = s
		return contextKeys(s), true
	})
	contexts.Keys = []strict.Key{{Name: "NAME", Value: contextKeys(&Settings{})}}
	return strict.Mapping(
		strict.Key{Name: "current", Value: strict.Text(&f.current)},
		strict.Key{Name: "contexts", Required: true, Value: contexts},
		strict.Key{Name: "agent", Value: f.agentKeys()},
	)
}

func contextKeys(s *Settings) strict.Value {
	return strict.Mapping(
		strict.Key{Name: "brokers", Value: strict.Each(func() strict.Value {
			var one string
			return strict.Then(strict.Parsed("broker", &one, hostPort), func(*strict.Document, string) { s.Brokers = append(s.Brokers, one) })
		})},
		strict.Key{Name: "kafka", Value: strict.Mapping(
			strict.Key{Name: "tls", Value: tlsKeys(&s.Kafka.TLS)},
			strict.Key{Name: "sasl", Value: saslKeys(&s.Kafka.SASL)},
		)},
		strict.Key{Name: "dsn", Value: strict.Parsed("connection string", &s.DSN, fileDSN)},
		strict.Key{Name: "dsn_password_file", Value: strict.Text(&s.Password.File)},
		strict.Key{Name: "dsn_password_command", Value: strict.Texts(&s.Password.Command)},
		strict.Key{Name: "schema", Value: strict.Parsed("schema name", &s.Schema, schemaName)},
		strict.Key{Name: "http", Value: strict.Parsed("address", &s.HTTP, hostPort)},
		strict.Key{Name: "checks", Value: strict.Mapping(strict.Key{Name: "role", Value: strict.Parsed("role", &s.Checks.Role, schemaName)})},
	)
}

func tlsKeys(t *TLS) strict.Value {
	return strict.Then(strict.Mapping(
		strict.Key{Name: "ca_file", Value: strict.Text(&t.CAFile)},
		strict.Key{Name: "cert_file", Value: strict.Text(&t.CertFile)},
		strict.Key{Name: "key_file", Value: strict.Text(&t.KeyFile)},
		strict.Key{Name: "server_name", Value: strict.Text(&t.ServerName)},
	), func(d *strict.Document, path string) {
		t.Enabled = true
		if (t.CertFile == "") != (t.KeyFile == "") {
			d.RefuseAt(path, "one of cert_file and key_file is missing", "write both or neither")
		}
	})
}

func saslKeys(s *SASL) strict.Value {
	return strict.Then(strict.Mapping(
		strict.Key{Name: "mechanism", Required: true, Value: strict.OneOf(&s.Mechanism, mechanisms()...)},
		strict.Key{Name: "user", Required: true, Value: strict.Text(&s.User)},
		strict.Key{Name: "password_file", Value: strict.Text(&s.Password.File)},
		strict.Key{Name: "password_command", Value: strict.Texts(&s.Password.Command)},
	), func(d *strict.Document, path string) {
		if s.Password.File != "" && len(s.Password.Command) > 0 {
			d.RefuseAt(path, "both password_file and password_command", "keep one of the two")
		}
	})
}

func mechanisms() []string { return []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} }

func (f *file) agentKeys() strict.Value {
	a := &f.agent
	return strict.Mapping(
		strict.Key{Name: "memory", Value: strict.Written("size", &a.Memory, memorySize)},
		strict.Key{Name: "temp", Value: strict.Text(&a.Temp)},
		strict.Key{Name: "replays", Value: strict.Int(&a.Replays, 1, 64)},
		strict.Key{Name: "lease", Value: strict.Written("duration", &a.Lease, within(500*time.Millisecond, 10*time.Minute))},
		strict.Key{Name: "heartbeat", Value: strict.Written("duration", &a.Heartbeat, within(50*time.Millisecond, 4*time.Second))},
		strict.Key{Name: "poll", Value: strict.Written("duration", &a.Poll, within(20*time.Millisecond, time.Minute))},
		strict.Key{Name: "log", Value: strict.OneOf(&a.Log, "text", "json")},
		strict.Key{Name: "hooks", Value: hookKeys(&f.hooks, false)},
		strict.Key{Name: "webhooks", Value: hookKeys(&f.webhooks, true)},
	)
}

// rules checks what one value alone cannot show.
func (f *file) rules() {
	f.hookRules()
	if f.current != "" && f.contexts[f.current] == nil {
		f.doc.RefuseAt("current", "there is no context "+f.current, strict.Suggest(f.current, f.names()))
	}
	for name, s := range f.contexts {
		if s.Password.File != "" && len(s.Password.Command) > 0 {
			f.doc.RefuseAt("contexts."+name+".dsn_password_command", "both dsn_password_file and dsn_password_command", "keep one of the two")
		}
	}
}

func (f *file) names() []string {
	var names []string
	for name := range f.contexts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// absolute makes the paths in the file relative to the file.
func (f *file) absolute() {
	dir := filepath.Dir(f.path)
	paths := []*string{&f.agent.Temp}
	for i := range f.webhooks {
		paths = append(paths, &f.webhooks[i].Secret.File)
	}
	for _, s := range f.contexts {
		paths = append(paths, &s.Password.File, &s.Kafka.SASL.Password.File, &s.Kafka.TLS.CAFile, &s.Kafka.TLS.CertFile, &s.Kafka.TLS.KeyFile)
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
		return nil, usage("the settings in "+f.path+" have several contexts and none is current", "choose one with --context: "+all)
	}
	return nil, usage(origin+": there is no context "+name+" in "+f.path, strict.Suggest(name, f.names()))
}
