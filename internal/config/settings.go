package config

import "time"

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
	// HTTPToken must come with requests about experiments; none: only those to a loopback address are served.
	HTTPToken Source
	// Protected makes commands ask before anything that readers could notice.
	Protected bool
	Checks    Checks
	Archive   Archive
	Agent     Agent
	Hooks     []Hook // of an agent

	origins map[string]string
}

// Checks is how the checks of job files run.
type Checks struct {
	Role string // the PostgreSQL role, which the agent's own is a member of; empty: the agent's own
}

// Archive is how archives are kept.
type Archive struct {
	Location     string        // as job.ParseLocation returns it, of those whose job file names none
	KeepReplaced time.Duration // how long a file stays that was merged into another one
	S3           S3
}

// S3 is how buckets are reached. The zero value is AWS.
type S3 struct {
	Endpoint    string // http:// or https://HOST[:PORT]; empty: AWS
	Region      string // empty: the endpoint is asked
	Addressing  string // path or host; empty: host for AWS, path for others
	CAFile      string // roots of the endpoint's certificate; empty: those of the system
	AccessKeyID string // empty: AWS's variables, its credentials file, or the role of the machine
	Secret      Source // of the access key
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
	Lease     time.Duration // after it other agents take over
	Heartbeat time.Duration
	Poll      time.Duration // interval between two polls for work
	Log       string        // json or text
	Programs  []string      // patterns of the programs of jobs that it runs; none: it runs none
	// ProgramDSN is how programs reach the database; empty: as the agent does.
	ProgramDSN DSN
}
