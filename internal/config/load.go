package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/job/strict"
)

// Flags are the flags that the user gave, by name without dashes. Names that are no settings are passed over, so that a
// command can hand over all of its flags.
type Flags map[string]string

// Load finds the settings. A wrong file is job.Problems; a wrong flag or variable is a *job.Refusal with ExitUsage.
func Load(flags Flags, e Env) (Settings, error) {
	if err := FlagDSN(flags["dsn"]); err != nil {
		return Settings{}, err
	}
	s, err := fromFile(flags, e)
	if err != nil {
		return Settings{}, err
	}
	fromPG(&s, e)
	for _, o := range table(&s) {
		if err := o.apply(&s, flags, e); err != nil {
			return Settings{}, err
		}
	}
	if err := s.fillDefaults(e); err != nil {
		return Settings{}, err
	}
	if err := s.check(); err != nil {
		return Settings{}, err
	}
	return s, nil
}

// fromFile reads the settings file, if there is one.
func fromFile(flags Flags, e Env) (Settings, error) {
	path, found := e.settingsFile(flags)
	if path == "" {
		if flags["context"] != "" {
			return Settings{}, usage("--context "+flags["context"]+": there is no settings file", "name one with --config")
		}
		return Settings{}, nil
	}
	f, err := readFile(path)
	if err != nil {
		return Settings{}, err
	}
	wanted, origin := wantedContext(flags, e)
	chosen, err := f.choose(wanted, origin)
	if err != nil {
		return Settings{}, err
	}
	s := *chosen
	s.Agent, s.File = f.common.Agent, path
	s.hooked(f, e)
	s.from("file", found)
	s.from("context", f.contextOrigin(wanted, origin))
	prefix := "contexts." + s.Context + "."
	for _, at := range f.doc.Paths() {
		place := fmt.Sprintf("%s:%d", path, f.doc.Node(at).Line)
		switch name, inContext := strings.CutPrefix(at, prefix); {
		case inContext:
			s.from(name, place)
		case strings.HasPrefix(at, "agent."):
			s.from(at, place)
		}
	}
	return s, nil
}

// wantedContext is the context that a flag or a variable names, and which of them; empty: none does.
func wantedContext(flags Flags, e Env) (name, origin string) {
	if name := flags["context"]; name != "" {
		return name, "--context"
	}
	return e.get("KAPPACTL_CONTEXT"), "KAPPACTL_CONTEXT"
}

// contextOrigin says what chose the context, for people.
func (f *file) contextOrigin(wanted, origin string) string {
	switch n := f.doc.Node("current"); {
	case wanted != "":
		return origin
	case n != nil:
		return fmt.Sprintf("%s:%d", f.path, n.Line)
	}
	return "the only one of the file"
}

// settingsFile is the path of the file that counts, and what named it; or empty.
func (e Env) settingsFile(flags Flags) (path, origin string) {
	for _, named := range [][2]string{{flags["config"], "--config"}, {e.get("KAPPACTL_CONFIG"), "KAPPACTL_CONFIG"}} {
		if named[0] != "" {
			return e.path(named[0]), named[1]
		}
	}
	for _, dir := range e.folders() {
		path, origin := filepath.Join(dir, "kappactl.yaml"), "the working folder"
		if dir != e.Dir {
			origin = "a folder above the working folder"
		}
		if isFile(path) {
			return path, origin
		}
	}
	if path := filepath.Join(e.UserDir, "kappactl", "kappactl.yaml"); e.UserDir != "" && isFile(path) {
		return path, "the user's configuration folder"
	}
	return "", ""
}

// folders are the working folder and, in a git repository, those above it up to the root of the repository. Beyond it a
// settings file may be another user's, and a settings file can name programs to run.
func (e Env) folders() []string {
	all := []string{e.Dir}
	for dir := e.Dir; ; dir = filepath.Dir(dir) {
		if dir != e.Dir {
			all = append(all, dir)
		}
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			return all
		}
		if dir == filepath.Dir(dir) {
			return []string{e.Dir}
		}
	}
}

func isFile(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// fromPG lets the variables of libpq that name a server or a database replace the file's connection as a whole, with
// its password: half of one and half of the other would be a third database. PGUSER, PGPORT, PGSSLMODE and the like
// fill what the connection string lacks; the driver sees to that.
func fromPG(s *Settings, e Env) {
	for _, name := range []string{"PGHOST", "PGHOSTADDR", "PGSERVICE", "PGDATABASE"} {
		if e.get(name) != "" {
			s.DSN, s.Password = "", Source{}
			s.from("dsn", name)
			delete(s.origins, "dsn_password_file")
			delete(s.origins, "dsn_password_command")
			break
		}
	}
	if e.get("PGPASSWORD") != "" {
		s.Password = Source{}
		s.from("dsn_password_file", "PGPASSWORD")
	}
}

// check validates the settings as a whole.
func (s *Settings) check() error {
	if s.Agent.Heartbeat >= s.Agent.Lease {
		return usage(fmt.Sprintf("agent.heartbeat (%s, from %s) is not shorter than agent.lease (%s, from %s)",
			s.Agent.Heartbeat, s.Origin("agent.heartbeat"), s.Agent.Lease, s.Origin("agent.lease")),
			"set the lease to three heartbeats or more")
	}
	if t := s.Kafka.TLS; (t.CertFile == "") != (t.KeyFile == "") {
		return usage("kafka.tls has one of cert_file and key_file without the other", "set both or neither")
	}
	if err := s.Archive.S3.check(); err != nil {
		return err
	}
	sasl := s.Kafka.SASL
	if sasl.Mechanism != "" && (sasl.User == "" || sasl.Password.IsZero()) {
		return usage("kafka.sasl has no user or no password", "set kafka.sasl.user and kafka.sasl.password_file")
	}
	if sasl.Mechanism == "" && (sasl.User != "" || !sasl.Password.IsZero()) {
		return usage("kafka.sasl has no mechanism", "set kafka.sasl.mechanism: "+strings.Join(mechanisms(), ", "))
	}
	return nil
}

// NeedBrokers refuses settings that name no broker.
func (s Settings) NeedBrokers() error {
	if len(s.Brokers) > 0 {
		return nil
	}
	return usage("no Kafka broker is set",
		"give --brokers HOST:PORT, set KAPPACTL_BROKERS, or write brokers into kappactl.yaml; kappactl dev starts a local stack")
}

// NeedDSN refuses settings that name no database.
func (s Settings) NeedDSN() error {
	if s.isSet("dsn") {
		return nil
	}
	return usage("no database is set",
		"give --dsn, set KAPPACTL_DSN or PGHOST, or write dsn into kappactl.yaml; kappactl dev starts a local stack")
}

func usage(cause, next string) error {
	return &job.Refusal{Code: job.ExitUsage, Cause: cause, Next: next}
}

// explainUsage turns the error of a parser into a refusal that names the flag or variable.
func explainUsage(origin string, err error) error {
	cause, cure := strict.Explain(err)
	return usage(origin+": "+redact(cause), cure)
}
