package config

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/job/strict"
)

// Setting is one setting: what the settings file, a flag, a variable, context show and docs/settings.md know about it.
type Setting struct {
	Name    string // key in the settings file, below its context; with the prefix agent. in the file itself
	Flag    string // without dashes; empty: no flag
	Env     string // empty: no variable
	Usage   string // with the name of the value in backquotes
	Default string // for people; empty: none
	Serve   bool   // the flag is one of serve only

	value    value
	noFile   bool        // the settings file cannot give it
	required bool        // the file's mapping must have it
	then     func()      // runs after a flag or a variable has set the value
	fill     func(e Env) // sets the default; nil: Default is parsed
}

// Table lists every setting.
func Table() []Setting { return table(&Settings{}) }

// table lists every setting, bound to the fields of s.
func table(s *Settings) []Setting {
	return slices.Concat(connectionTable(s), tlsTable(s), saslTable(s), s3Table(s), agentTable(s))
}

func connectionTable(s *Settings) []Setting {
	dsn := text(&s.DSN, "connection string", parseDSN)
	dsn.key = strict.Parsed("connection string", &s.DSN, fileDSN)
	role := text(&s.Checks.Role, "role", schemaName)
	location := text(&s.Archive.Location, "location", job.ParseLocation)
	return []Setting{
		{
			Name: "brokers", Flag: "brokers", Env: "KAPPACTL_BROKERS",
			Usage: "Kafka brokers, `HOST:PORT`[,HOST:PORT]", value: brokers(&s.Brokers),
		},
		{
			Name: "dsn", Flag: "dsn", Env: "KAPPACTL_DSN", value: dsn, then: s.takePassword(Source{}),
			Usage: "PostgreSQL connection string, `URL` or key=value (PGPASSWORD or PGPASSFILE for the password)",
		},
		{
			Name: "dsn_password_file", Env: "KAPPACTL_DSN_PASSWORD_FILE",
			Usage: "file with the database password, on its first line",
			value: path(&s.Password.File), then: func() { s.takePassword(Source{File: s.Password.File})() },
		},
		{
			Name:  "dsn_password_command",
			Usage: "program and arguments that print the database password", value: command(&s.Password.Command),
		},
		{
			Name: "schema", Flag: "schema", Env: "KAPPACTL_SCHEMA", Default: "kappactl",
			Usage: "`NAME` of the control schema", value: text(&s.Schema, "schema name", schemaName),
		},
		{
			Name: "protected", Default: "false",
			Usage: "true: commands ask for the context's name, or need --yes, before anything that readers could notice",
			value: boolean(&s.Protected),
		},
		{
			Name: "http", Flag: "http", Env: "KAPPACTL_HTTP", Default: "127.0.0.1:8080",
			Usage: "`ADDRESS` that serve listens on", Serve: true, value: text(&s.HTTP, "address", hostPort),
		},
		{
			Name: "http_token_file", Env: "KAPPACTL_HTTP_TOKEN_FILE",
			Usage: "file whose first line is the token that requests about experiments must bring; without it only a loopback address serves them",
			value: path(&s.HTTPToken.File),
		},
		{
			Name: "checks.role", Flag: "checks-role", Env: "KAPPACTL_CHECKS_ROLE",
			Usage: "PostgreSQL `ROLE` that checks run as", Serve: true, value: role,
		},
		{
			Name: "archive.location", Env: "KAPPACTL_ARCHIVE_LOCATION",
			Usage: "file:///PATH or s3://BUCKET/PREFIX of archives whose job file names no location", value: location,
		},
		{
			Name: "archive.keep_replaced", Env: "KAPPACTL_ARCHIVE_KEEP_REPLACED", Default: "7d",
			Usage: "how long a file of an archive stays that was merged into another one; longer than restores of the database reach back",
			value: duration(&s.Archive.KeepReplaced, time.Second, 365*24*time.Hour),
		},
	}
}

// takePassword replaces the password of the database; one from the file belongs to the connection of the file.
func (s *Settings) takePassword(from Source) func() {
	return func() {
		s.Password = from
		s.forget("dsn_password_file", "dsn_password_command")
	}
}

func tlsTable(s *Settings) []Setting {
	t := &s.Kafka.TLS
	enable := func() { t.Enabled = true }
	return []Setting{
		{
			Name: "kafka.tls", Env: "KAPPACTL_KAFKA_TLS",
			Usage: "true encrypts the connections to Kafka; in the file the mapping does",
			value: s.tlsSwitch(), noFile: true,
		},
		{
			Name: "kafka.tls.ca_file", Env: "KAPPACTL_KAFKA_TLS_CA_FILE",
			Usage: "roots for Kafka's certificates", value: path(&t.CAFile), then: enable,
		},
		{
			Name: "kafka.tls.cert_file", Env: "KAPPACTL_KAFKA_TLS_CERT_FILE",
			Usage: "client certificate for Kafka", value: path(&t.CertFile), then: enable,
		},
		{
			Name: "kafka.tls.key_file", Env: "KAPPACTL_KAFKA_TLS_KEY_FILE",
			Usage: "key of the client certificate", value: path(&t.KeyFile), then: enable,
		},
		{
			Name: "kafka.tls.server_name", Env: "KAPPACTL_KAFKA_TLS_SERVER_NAME",
			Usage: "name in the brokers' certificates", value: word(&t.ServerName),
		},
	}
}

func saslTable(s *Settings) []Setting {
	sasl := &s.Kafka.SASL
	take := func(from func() Source) func() {
		return func() {
			sasl.Password = from()
			s.forget("kafka.sasl.password", "kafka.sasl.password_file", "kafka.sasl.password_command")
		}
	}
	return []Setting{
		{
			Name: "kafka.sasl.mechanism", Env: "KAPPACTL_KAFKA_SASL_MECHANISM",
			Usage: strings.Join(mechanisms(), ", "),
			value: oneOf(&sasl.Mechanism, mechanisms()...), required: true,
		},
		{
			Name: "kafka.sasl.user", Env: "KAPPACTL_KAFKA_SASL_USER",
			Usage: "Kafka user", value: word(&sasl.User), required: true,
		},
		{
			Name: "kafka.sasl.password_file", Env: "KAPPACTL_KAFKA_SASL_PASSWORD_FILE",
			Usage: "file with the Kafka password, on its first line",
			value: path(&sasl.Password.File), then: take(func() Source { return Source{File: sasl.Password.File} }),
		},
		{
			Name:  "kafka.sasl.password_command",
			Usage: "program and arguments that print the Kafka password", value: command(&sasl.Password.Command),
		},
		{
			Name: "kafka.sasl.password", Env: "KAPPACTL_KAFKA_SASL_PASSWORD", Usage: "the Kafka password; never in the file",
			noFile: true,
			value:  secret(&sasl.Password.Value), then: take(func() Source { return Source{Value: sasl.Password.Value} }),
		},
	}
}

func mechanisms() []string { return []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} }

func agentTable(s *Settings) []Setting {
	a := &s.Agent
	programDSN := text(&a.ProgramDSN, "connection string", parseDSN)
	programDSN.key = strict.Parsed("connection string", &a.ProgramDSN, fileDSN)
	return []Setting{
		{
			Name: "agent.memory", Flag: "memory", Env: "KAPPACTL_MEMORY", Serve: true, value: size(&a.Memory),
			Usage:   "memory for fetch buffers and SQL, a `SIZE` such as 1GB",
			Default: "half of the memory, at most 1GB", fill: func(e Env) { a.Memory = e.memory() },
		},
		{
			Name: "agent.temp", Flag: "temp", Env: "KAPPACTL_TEMP", Serve: true, value: path(&a.Temp),
			Usage:   "`FOLDER` for spilling",
			Default: "the system's folder for temporary files", fill: func(e Env) { a.Temp = e.temp() },
		},
		{
			Name: "agent.replays", Flag: "replays", Env: "KAPPACTL_REPLAYS", Default: "2",
			Usage: "at most `N` versions replay at once, over all agents", Serve: true,
			value: count(&a.Replays, 64),
		},
		{
			Name: "agent.lease", Env: "KAPPACTL_LEASE", Default: "10s", Serve: true,
			Usage: "`DURATION` of a lease: after it other agents take over",
			value: duration(&a.Lease, 500*time.Millisecond, 10*time.Minute),
		},
		{
			Name: "agent.heartbeat", Env: "KAPPACTL_HEARTBEAT", Serve: true,
			Usage: "`DURATION` between two heartbeats", value: duration(&a.Heartbeat, 50*time.Millisecond, 4*time.Second),
			// A short lease, as tests set it, needs heartbeats that fit into it.
			Default: "1s, at most a third of the lease", fill: func(Env) { a.Heartbeat = min(time.Second, a.Lease/3) },
		},
		{
			Name: "agent.poll", Env: "KAPPACTL_POLL", Default: "500ms", Serve: true,
			Usage: "`DURATION` between two queries for work", value: duration(&a.Poll, 20*time.Millisecond, time.Minute),
		},
		{
			Name: "agent.log", Flag: "log", Env: "KAPPACTL_LOG", Default: "text",
			Usage: "`FORMAT` of its log, text or json", Serve: true, value: oneOf(&a.Log, "text", "json"),
		},
		{
			Name: "agent.programs", Env: "KAPPACTL_PROGRAMS",
			Usage: "programs that jobs of engine: program may run, patterns of absolute paths such as /opt/jobs/*: docs/programs.md",
			value: programs(&a.Programs),
		},
		{
			Name: "agent.program_dsn", Env: "KAPPACTL_PROGRAM_DSN", Default: "that of dsn", fill: func(Env) {},
			Usage: "PostgreSQL connection string that programs get: docs/programs.md", value: programDSN,
		},
		{Name: "agent.hooks", Usage: "commands that are told of events: docs/hooks.md", value: s.hookList(false)},
		{Name: "agent.webhooks", Usage: "addresses that are told of events: docs/hooks.md", value: s.hookList(true)},
	}
}

// OfAgent reports whether the file has the setting once for all contexts.
func (o Setting) OfAgent() bool { return strings.HasPrefix(o.Name, "agent.") }

// apply takes the flag, else the variable.
func (o Setting) apply(s *Settings, flags Flags, e Env) error {
	given, origin := "", ""
	if o.Flag != "" {
		given, origin = flags[o.Flag], "--"+o.Flag
	}
	if given == "" && o.Env != "" {
		given, origin = e.get(o.Env), o.Env
	}
	if given == "" {
		return nil
	}
	if err := o.value.set(given); err != nil {
		return explainUsage(origin, err)
	}
	if o.then != nil {
		o.then()
	}
	s.from(o.Name, origin)
	return nil
}

// fillDefaults gives every setting without a value its default.
func (s *Settings) fillDefaults(e Env) error {
	for _, o := range table(s) {
		switch {
		case o.value.text() != "" || o.Default == "":
		case o.fill != nil:
			o.fill(e)
		default:
			if err := o.value.set(o.Default); err != nil {
				return explainUsage("default of "+o.Name, err)
			}
		}
	}
	return nil
}

// Shown is one setting as a person may see it: no value holds a password.
type Shown struct {
	Name   string  `json:"name"`   // as in the settings file, below the context
	Value  *string `json:"value"`  // nil: not set, or known to the driver alone (PGHOST, PGPASSWORD …); *** in place of a secret
	Origin string  `json:"origin"` // as of Settings.Origin, or "not set"
}

// Show lists every setting with its value and where it was found, the settings file and the context first.
func (s Settings) Show() []Shown {
	out := []Shown{s.shown("file", s.File), s.shown("context", s.Context)}
	for _, o := range table(&s) {
		out = append(out, s.shown(o.Name, o.value.text()))
	}
	return out
}

func (s Settings) shown(name, text string) Shown {
	one := Shown{Name: name, Origin: s.Origin(name)}
	switch {
	case text != "":
		one.Value = &text
	case !s.isSet(name):
		one.Origin = "not set"
	}
	return one
}

// Origin is where a setting was found, for people: "--brokers", "KAPPACTL_DSN", "PGHOST", "./kappactl.yaml:4",
// "default". Names are those of Table.
func (s Settings) Origin(name string) string { return cmp.Or(s.origins[name], "default") }

// isSet reports whether a setting came from somewhere.
func (s Settings) isSet(name string) bool { return s.origins[name] != "" }

func (s *Settings) from(name, origin string) {
	if s.origins == nil {
		s.origins = map[string]string{}
	}
	s.origins[name] = origin
}

// forget removes the origins of settings that are replaced as a whole; PGPASSWORD, which the driver reads, stays.
func (s *Settings) forget(names ...string) {
	for _, name := range names {
		if s.origins[name] != "PGPASSWORD" {
			delete(s.origins, name)
		}
	}
}
