package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/kappactl/kappactl/internal/job"
)

var errPasswordInFile = errors.New("a connection string with a password is not written to a file")

// fileText is the settings file as it is written; Load reads it by its table of keys.
type fileText struct {
	Current  string                 `yaml:"current"`
	Contexts map[string]contextText `yaml:"contexts"`
	Agent    *agentText             `yaml:"agent,omitempty"`
}

type contextText struct {
	Brokers         []string   `yaml:"brokers,omitempty,flow"`
	Kafka           *kafkaText `yaml:"kafka,omitempty"`
	DSN             string     `yaml:"dsn,omitempty"`
	PasswordFile    string     `yaml:"dsn_password_file,omitempty"`
	PasswordCommand []string   `yaml:"dsn_password_command,omitempty,flow"`
	Schema          string     `yaml:"schema,omitempty"`
	HTTP            string     `yaml:"http,omitempty"`
}

type kafkaText struct {
	TLS  *tlsText  `yaml:"tls,omitempty"`
	SASL *saslText `yaml:"sasl,omitempty"`
}

type tlsText struct {
	CAFile     string `yaml:"ca_file,omitempty"`
	CertFile   string `yaml:"cert_file,omitempty"`
	KeyFile    string `yaml:"key_file,omitempty"`
	ServerName string `yaml:"server_name,omitempty"`
}

type saslText struct {
	Mechanism       string   `yaml:"mechanism"`
	User            string   `yaml:"user"`
	PasswordFile    string   `yaml:"password_file,omitempty"`
	PasswordCommand []string `yaml:"password_command,omitempty,flow"`
}

type agentText struct {
	Memory    string `yaml:"memory,omitempty"`
	Temp      string `yaml:"temp,omitempty"`
	Replays   int    `yaml:"replays,omitempty"`
	Lease     string `yaml:"lease,omitempty"`
	Heartbeat string `yaml:"heartbeat,omitempty"`
	Poll      string `yaml:"poll,omitempty"`
	Log       string `yaml:"log,omitempty"`
}

// Write writes a settings file with one context (s.Context, or dev) for this user only. Readers see the old file or the
// whole new one. A DSN with a password is refused; zero fields are left out.
func Write(path string, s Settings) error {
	if s.DSN.String() != string(s.DSN) || s.Password.Value != "" || s.Kafka.SASL.Password.Value != "" {
		return errPasswordInFile
	}
	text, err := render(s)
	if err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	return writeWhole(path, text, 0o600)
}

// writeWhole writes a file so that readers see the old one or the whole new one.
func writeWhole(path string, text []byte, mode os.FileMode) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".kappactl-*.yaml")
	if err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	_, err = temp.Write(text)
	err = errors.Join(err, temp.Chmod(mode), temp.Sync(), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write settings: %w", errors.Join(err, os.Remove(temp.Name())))
	}
	return nil
}

func render(s Settings) ([]byte, error) {
	name := cmp.Or(s.Context, "dev")
	doc := fileText{Current: name, Agent: agentTextOf(s.Agent), Contexts: map[string]contextText{name: {
		Brokers: s.Brokers, Kafka: kafkaTextOf(s.Kafka), DSN: string(s.DSN), PasswordFile: s.Password.File,
		PasswordCommand: s.Password.Command, Schema: s.Schema, HTTP: s.HTTP,
	}}}
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(doc); err != nil {
		return nil, err
	}
	return b.Bytes(), encoder.Close()
}

func kafkaTextOf(k Kafka) *kafkaText {
	var out kafkaText
	if t := k.TLS; t.Enabled {
		out.TLS = &tlsText{CAFile: t.CAFile, CertFile: t.CertFile, KeyFile: t.KeyFile, ServerName: t.ServerName}
	}
	if s := k.SASL; s.Mechanism != "" {
		out.SASL = &saslText{Mechanism: s.Mechanism, User: s.User, PasswordFile: s.Password.File, PasswordCommand: s.Password.Command}
	}
	if out == (kafkaText{}) {
		return nil
	}
	return &out
}

func agentTextOf(a Agent) *agentText {
	if a == (Agent{}) {
		return nil
	}
	out := agentText{
		Temp: a.Temp, Replays: a.Replays, Log: a.Log,
		Lease: duration(a.Lease), Heartbeat: duration(a.Heartbeat), Poll: duration(a.Poll),
	}
	if a.Memory > 0 {
		out.Memory = strconv.FormatInt(a.Memory, 10) + "B"
	}
	return &out
}

func duration(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return job.FormatDuration(d)
}
