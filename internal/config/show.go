package config

import (
	"strconv"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
)

// Shown is one setting as a person may see it: no value holds a password.
type Shown struct {
	Name   string  `json:"name"`   // as in the settings file, below the context
	Value  *string `json:"value"`  // nil: not set, or known to the driver alone (PGHOST, PGPASSWORD …); *** in place of a secret
	Origin string  `json:"origin"` // as of Settings.Origin, or "not set"
}

// Show lists every setting with its value and where it was found, the settings file and the context first.
func (s Settings) Show() []Shown {
	var out []Shown
	for _, v := range append(append(s.connection(), s.kafkaValues()...), s.agentValues()...) {
		origin := s.Origin(v.name)
		one := Shown{Name: v.name, Origin: origin}
		switch {
		case v.text != "":
			one.Value = &v.text
		case !s.isSet(v.name):
			one.Origin = "not set"
		}
		out = append(out, one)
	}
	return out
}

// shownValue is a setting's name and its value as text; empty: it has none.
type shownValue struct{ name, text string }

func (s Settings) connection() []shownValue {
	return []shownValue{
		{"file", s.File},
		{"context", s.Context},
		{"brokers", strings.Join(s.Brokers, ",")},
		{"dsn", s.DSN.String()},
		{"dsn_password_file", s.Password.File},
		{"dsn_password_command", masked(s.Password.Command)},
		{"schema", s.Schema},
		{"http", s.HTTP},
		{"checks.role", s.Checks.Role},
	}
}

func (s Settings) kafkaValues() []shownValue {
	tls, sasl := s.Kafka.TLS, s.Kafka.SASL
	enabled, password := "", ""
	if tls.Enabled || s.isSet("kafka.tls") {
		enabled = strconv.FormatBool(tls.Enabled)
	}
	if sasl.Password.Value != "" {
		password = hidden
	}
	return []shownValue{
		{"kafka.tls", enabled},
		{"kafka.tls.ca_file", tls.CAFile},
		{"kafka.tls.cert_file", tls.CertFile},
		{"kafka.tls.key_file", tls.KeyFile},
		{"kafka.tls.server_name", tls.ServerName},
		{"kafka.sasl.mechanism", sasl.Mechanism},
		{"kafka.sasl.user", sasl.User},
		{"kafka.sasl.password", password},
		{"kafka.sasl.password_file", sasl.Password.File},
		{"kafka.sasl.password_command", masked(sasl.Password.Command)},
	}
}

func (s Settings) agentValues() []shownValue {
	a := s.Agent
	return []shownValue{
		{"agent.memory", sizeText(a.Memory)},
		{"agent.temp", a.Temp},
		{"agent.replays", strconv.Itoa(a.Replays)},
		{"agent.lease", job.FormatDuration(a.Lease)},
		{"agent.heartbeat", job.FormatDuration(a.Heartbeat)},
		{"agent.poll", job.FormatDuration(a.Poll)},
		{"agent.log", a.Log},
		{"agent.hooks", s.hookNames(false)},
		{"agent.webhooks", s.hookNames(true)},
	}
}

// masked is a command without its arguments, which may hold a token.
func masked(command []string) string {
	switch len(command) {
	case 0:
		return ""
	case 1:
		return command[0]
	}
	return command[0] + " " + hidden
}

// sizeText is a number of bytes in the largest unit that holds it exactly.
func sizeText(n int64) string {
	for _, unit := range []struct {
		bytes int64
		name  string
	}{{1e9, "GB"}, {1 << 30, "GiB"}, {1e6, "MB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n > 0 && n%unit.bytes == 0 {
			return strconv.FormatInt(n/unit.bytes, 10) + unit.name
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}
