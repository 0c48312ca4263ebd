package config

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/job/strict"
)

// Option is one setting as flag and variable.
type Option struct {
	Name  string // as in the settings file, below the context: brokers, kafka.sasl.user, agent.lease
	Flag  string // without dashes; empty: no flag
	Env   string // empty: no variable
	Usage string
	Serve bool // a flag of serve only

	set func(s *Settings, text string) error
}

// Options lists the settings that a flag or a variable can give.
func Options() []Option {
	return append(append(connectionOptions(), kafkaOptions()...), agentOptions()...)
}

func connectionOptions() []Option {
	return []Option{
		{Name: "brokers", Flag: "brokers", Env: "KAPPACTL_BROKERS", Usage: "Kafka brokers, `HOST:PORT`[,HOST:PORT]", set: setBrokers},
		{Name: "dsn", Flag: "dsn", Env: "KAPPACTL_DSN", Usage: "PostgreSQL connection string, `URL` or key=value (PGPASSWORD or PGPASSFILE for the password)", set: setDSN},
		{Name: "dsn_password_file", Env: "KAPPACTL_DSN_PASSWORD_FILE", Usage: "file with the database password", set: func(s *Settings, text string) error {
			s.Password = Source{File: text}
			s.forget("dsn_password_command")
			return nil
		}},
		{Name: "schema", Flag: "schema", Env: "KAPPACTL_SCHEMA", Usage: "`NAME` of the control schema", set: into(func(s *Settings) *string { return &s.Schema }, schemaName)},
		{Name: "http", Flag: "http", Env: "KAPPACTL_HTTP", Usage: "`ADDRESS` that serve listens on", Serve: true, set: into(func(s *Settings) *string { return &s.HTTP }, hostPort)},
		{Name: "checks.role", Flag: "checks-role", Env: "KAPPACTL_CHECKS_ROLE", Usage: "PostgreSQL `ROLE` that checks run as", Serve: true, set: into(func(s *Settings) *string { return &s.Checks.Role }, schemaName)},
	}
}

func kafkaOptions() []Option {
	return []Option{
		{Name: "kafka.tls", Env: "KAPPACTL_KAFKA_TLS", Usage: "true: encrypt the connections to Kafka", set: into(func(s *Settings) *bool { return &s.Kafka.TLS.Enabled }, flagOf)},
		{Name: "kafka.tls.ca_file", Env: "KAPPACTL_KAFKA_TLS_CA_FILE", Usage: "roots for Kafka's certificates", set: func(s *Settings, text string) error {
			s.Kafka.TLS.Enabled, s.Kafka.TLS.CAFile = true, text
			return nil
		}},
		{Name: "kafka.tls.cert_file", Env: "KAPPACTL_KAFKA_TLS_CERT_FILE", Usage: "client certificate for Kafka", set: func(s *Settings, text string) error {
			s.Kafka.TLS.Enabled, s.Kafka.TLS.CertFile = true, text
			return nil
		}},
		{Name: "kafka.tls.key_file", Env: "KAPPACTL_KAFKA_TLS_KEY_FILE", Usage: "its key", set: func(s *Settings, text string) error {
			s.Kafka.TLS.Enabled, s.Kafka.TLS.KeyFile = true, text
			return nil
		}},
		{Name: "kafka.tls.server_name", Env: "KAPPACTL_KAFKA_TLS_SERVER_NAME", Usage: "name in the brokers' certificates", set: into(func(s *Settings) *string { return &s.Kafka.TLS.ServerName }, asIs)},
		{Name: "kafka.sasl.mechanism", Env: "KAPPACTL_KAFKA_SASL_MECHANISM", Usage: strings.Join(mechanisms(), ", "), set: into(func(s *Settings) *string { return &s.Kafka.SASL.Mechanism }, oneOf(mechanisms()...))},
		{Name: "kafka.sasl.user", Env: "KAPPACTL_KAFKA_SASL_USER", Usage: "Kafka user", set: into(func(s *Settings) *string { return &s.Kafka.SASL.User }, asIs)},
		{Name: "kafka.sasl.password_file", Env: "KAPPACTL_KAFKA_SASL_PASSWORD_FILE", Usage: "file with the Kafka password", set: func(s *Settings, text string) error {
			s.Kafka.SASL.Password = Source{File: text}
			s.forget("kafka.sasl.password", "kafka.sasl.password_file", "kafka.sasl.password_command")
			return nil
		}},
		{Name: "kafka.sasl.password", Env: "KAPPACTL_KAFKA_SASL_PASSWORD", Usage: "the Kafka password", set: func(s *Settings, text string) error {
			s.Kafka.SASL.Password = Source{Value: Secret(text)}
			s.forget("kafka.sasl.password", "kafka.sasl.password_file", "kafka.sasl.password_command")
			return nil
		}},
	}
}

func agentOptions() []Option {
	return []Option{
		{Name: "agent.memory", Flag: "memory", Env: "KAPPACTL_MEMORY", Usage: "memory for fetch buffers and SQL, a `SIZE` such as 1GB", Serve: true, set: into(func(s *Settings) *int64 { return &s.Agent.Memory }, memorySize)},
		{Name: "agent.temp", Flag: "temp", Env: "KAPPACTL_TEMP", Usage: "`FOLDER` for spilling", Serve: true, set: into(func(s *Settings) *string { return &s.Agent.Temp }, asIs)},
		{Name: "agent.replays", Flag: "replays", Env: "KAPPACTL_REPLAYS", Usage: "at most `N` versions replay at once, over all agents", Serve: true, set: into(func(s *Settings) *int { return &s.Agent.Replays }, countOf)},
		{Name: "agent.lease", Flag: "lease", Env: "KAPPACTL_LEASE", Usage: "`DURATION` by which a claim outlives its agent", Serve: true, set: into(func(s *Settings) *time.Duration { return &s.Agent.Lease }, within(500*time.Millisecond, 10*time.Minute))},
		{Name: "agent.heartbeat", Flag: "heartbeat", Env: "KAPPACTL_HEARTBEAT", Usage: "`DURATION` between two signs of life of the agent", Serve: true, set: into(func(s *Settings) *time.Duration { return &s.Agent.Heartbeat }, within(50*time.Millisecond, 4*time.Second))},
		{Name: "agent.poll", Flag: "poll", Env: "KAPPACTL_POLL", Usage: "`DURATION` between two looks for work", Serve: true, set: into(func(s *Settings) *time.Duration { return &s.Agent.Poll }, within(20*time.Millisecond, time.Minute))},
		{Name: "agent.log", Flag: "log", Env: "KAPPACTL_LOG", Usage: "`FORMAT` of its log, text or json", Serve: true, set: into(func(s *Settings) *string { return &s.Agent.Log }, oneOf("text", "json"))},
	}
}

// apply takes the flag, else the variable.
func (o Option) apply(s *Settings, flags Flags, e Env) error {
	text, origin := "", ""
	if o.Flag != "" {
		text, origin = flags[o.Flag], "--"+o.Flag
	}
	if text == "" && o.Env != "" {
		text, origin = e.get(o.Env), o.Env
	}
	if text == "" {
		return nil
	}
	if err := o.set(s, text); err != nil {
		return explainUsage(origin, err)
	}
	s.from(o.Name, origin)
	return nil
}

func into[T any](field func(*Settings) *T, parse func(string) (T, error)) func(*Settings, string) error {
	return func(s *Settings, text string) error {
		v, err := parse(text)
		if err != nil {
			return err
		}
		*field(s) = v
		return nil
	}
}

func setBrokers(s *Settings, text string) error {
	var brokers []string
	for _, one := range strings.Split(strings.Trim(text, "[]"), ",") {
		broker, err := hostPort(strings.TrimSpace(one))
		if err != nil {
			return err
		}
		brokers = append(brokers, broker)
	}
	s.Brokers = brokers
	return nil
}

// setDSN takes another connection than the file's; the file's password belongs to the file's.
func setDSN(s *Settings, text string) error {
	dsn, err := parseDSN(text)
	if err != nil {
		return err
	}
	s.DSN, s.Password = dsn, Source{}
	s.forget("dsn_password_file", "dsn_password_command")
	return nil
}

func hostPort(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	n, portErr := strconv.Atoi(port)
	if err != nil || portErr != nil || host == "" || n < 0 || n > 65535 || strings.ContainsAny(text, " /@") {
		return "", strict.Want(fmt.Sprintf("%q is not HOST:PORT", redact(text)), "write a host and a port, such as 127.0.0.1:9092")
	}
	return text, nil
}

func schemaName(text string) (string, error) {
	if text == "" || len(text) > job.MaxIdentifier || strings.HasPrefix(text, "pg_") || text == "information_schema" || strings.ContainsRune(text, 0) {
		return "", strict.Want(fmt.Sprintf("%q cannot be a schema of ours", text), "write a name of 1 to 63 bytes that does not begin with pg_")
	}
	return text, nil
}

func memorySize(text string) (int64, error) {
	n, err := job.ParseSize(text)
	if err == nil && n < 64<<20 {
		err = strict.Want(text+" is too little", "write 64MiB or more")
	}
	return n, err
}

func within(least, most time.Duration) func(string) (time.Duration, error) {
	return func(text string) (time.Duration, error) {
		d, err := job.ParseDuration(text)
		if err == nil && (d < least || d > most) {
			err = strict.Want(text+" is out of range", "write "+job.FormatDuration(least)+" to "+job.FormatDuration(most))
		}
		return d, err
	}
}

func countOf(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 64 {
		return 0, strict.Want(fmt.Sprintf("%q is not a count", text), "write 1 to 64")
	}
	return n, nil
}

func flagOf(text string) (bool, error) {
	b, err := strconv.ParseBool(text)
	if err != nil {
		return false, strict.Want(fmt.Sprintf("%q is neither true nor false", text), "write true or false")
	}
	return b, nil
}

func oneOf(words ...string) func(string) (string, error) {
	return func(text string) (string, error) {
		for _, w := range words {
			if w == text {
				return w, nil
			}
		}
		return "", strict.Want(fmt.Sprintf("unknown value %q", text), strict.Suggest(text, words))
	}
}

func asIs(text string) (string, error) { return text, nil }
