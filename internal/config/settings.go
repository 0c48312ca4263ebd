package config

import (
	"cmp"
	"time"
)

// Settings is everything a command needs to know about its surroundings.
type Settings struct {
	Context  string   // name of the context in the settings file, or empty
	File     string   // the settings file that was read, or empty
	Brokers  []string // host:port
	Kafka    Kafka
	DSN      DSN    // empty: the PG* variables say it all
	Password Source // of the database user; none: the DSN, PGPASSWORD and PGPASSFILE are in charge
	Schema   string // control schema
	HTTP     string // host:port that serve listens on
	Checks   Checks
	Agent    Agent
	Hooks    []Hook // of an agent

	origins map[string]string
}

// Checks is how the checks of job files run.
type Checks struct {
	Role string // the PostgreSQL role, which the agent's own is a member of; empty: the agent's own
}

// Kafka says how to talk to the brokers. The zero value is plain text.
type Kafka struct {
	TLS  TLS
	SASL SASL
}

// TLS encrypts the connections to the brokers.
type TLS struct {
	Enabled    bool
	CAFile     string // roots; empty: those of the system
	CertFile   string // client certificate and key, both or none
	KeyFile    string
	ServerName string // name in the broker's certificate when it is not the host's
}

// SASL proves who we are to the brokers; an empty Mechanism is none.
type SASL struct {
	Mechanism string // PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512
	User      string
	Password  Source
}

// Agent is how serve works.
type Agent struct {
	Memory    int64         // bytes for fetch buffers and SQL
	Temp      string        // folder in which each agent makes a folder of its own for spilling
	Replays   int           // versions that replay at once, over all agents
	Lease     time.Duration // how long a claim outlives its agent
	Heartbeat time.Duration
	Poll      time.Duration // how often it looks for work
	Log       string        // json or text
}

// The defaults.
const (
	DefaultSchema    = "kappactl"
	DefaultHTTP      = "127.0.0.1:8080"
	DefaultReplays   = 2
	DefaultLease     = 10 * time.Second
	DefaultHeartbeat = time.Second
	DefaultPoll      = 500 * time.Millisecond
	DefaultLog       = "text"
)

// Origin says where a setting was found, for people: "--brokers", "KAPPACTL_DSN", "PGHOST", "./kappactl.yaml:4", "default". Names are
// those of Options.
func (s Settings) Origin(name string) string {
	return cmp.Or(s.origins[name], "default")
}

// isSet says that a setting came from somewhere.
func (s Settings) isSet(name string) bool { return s.origins[name] != "" }

func (s *Settings) from(name, origin string) {
	if s.origins == nil {
		s.origins = map[string]string{}
	}
	s.origins[name] = origin
}

// fillDefaults gives what nobody set its default.
func (s *Settings) fillDefaults(e Env) {
	a := &s.Agent
	s.Schema, s.HTTP = cmp.Or(s.Schema, DefaultSchema), cmp.Or(s.HTTP, DefaultHTTP)
	a.Memory, a.Temp = cmp.Or(a.Memory, e.memory()), cmp.Or(a.Temp, e.temp())
	a.Replays, a.Log = cmp.Or(a.Replays, DefaultReplays), cmp.Or(a.Log, DefaultLog)
	a.Lease, a.Poll = cmp.Or(a.Lease, DefaultLease), cmp.Or(a.Poll, DefaultPoll)
	// A short lease, as tests set it, needs heartbeats that fit into it.
	a.Heartbeat = cmp.Or(a.Heartbeat, min(DefaultHeartbeat, a.Lease/3))
}

// forget says that settings from the file are replaced as a whole; PGPASSWORD, which the driver reads, stays.
func (s *Settings) forget(names ...string) {
	for _, name := range names {
		if s.origins[name] != "PGPASSWORD" {
			delete(s.origins, name)
		}
	}
}
