package config_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/config"
	"github.com/kappactl/kappactl/internal/job"
)

func TestWrongFilesNamePlaceCauseAndCure(t *testing.T) {
	tests := []struct{ name, text, place, cause, cure string }{
		{"unknown key", "contexts:\n  dev:\n    broker: [a:1]\n", ":3:5", `unknown key "broker"`, "did you mean brokers?"},
		{"password in a URL", "contexts: {dev: {dsn: 'postgres://u:hunter2@h/d'}}", ":1:23", "a password stands in the settings file", "dsn_password_file"},
		{"password as a pair", "contexts: {dev: {dsn: 'host=h password = hunter2'}}", ":1:23", "a password stands", "PGPASSWORD"},
		{"quoted password", `contexts: {dev: {dsn: "host=h password='hunter2 x'"}}`, ":1:23", "a password stands", "PGPASSFILE"},
		{"escaped password", "contexts: {dev: {dsn: 'postgres://h/d?p%61ssword=hunter2'}}", ":1:23", "a password stands", "dsn_password_command"},
		{"key of a client certificate", "contexts: {dev: {dsn: 'host=h sslpassword=hunter2'}}", ":1:23", "a password stands", ""},
		{"a connection string for a context", "contexts: {dev: 'postgres://u:hunter2@h/d'}", ":1:17", "want a mapping", ""},
		{"not a connection string", "contexts: {dev: {dsn: 'hunter2'}}", ":1:23", "cannot be read", "host="},
		{"broker without port", "contexts: {dev: {brokers: [localhost]}}", ":1:28", `"localhost" is not HOST:PORT`, "9092"},
		{"brokers as text", "contexts: {dev: {brokers: 'a:1'}}", ":1:27", "want a list", "[ ]"},
		{"unknown mechanism", "contexts: {dev: {kafka: {sasl: {mechanism: SCRAM, user: u, password_file: f}}}}", ":1:44", `unknown value "SCRAM"`, "SCRAM-SHA-512"},
		{"sasl without user", "contexts: {dev: {kafka: {sasl: {mechanism: PLAIN, password_file: f}}}}", ":1:32", "missing", "add user"},
		{"half a certificate", "contexts: {dev: {kafka: {tls: {cert_file: f}}}}", ":1:31", "key_file is missing", "both"},
		{"two password sources", "contexts: {dev: {dsn_password_file: f, dsn_password_command: [x]}}", ":1:62", "both dsn_password_file", "keep one"},
		{"current is no context", "current: prd\ncontexts: {prod: {}}", ":1:10", "no context prd", "did you mean prod?"},
		{"lease without unit", "contexts: {d: {}}\nagent: {lease: 10}", ":2:16", `"10" is not a duration`, "10m"},
		{"too little memory", "contexts: {d: {}}\nagent: {memory: 1MB}", ":2:17", "too little", "64MiB"},
		{"wrong log format", "contexts: {d: {}}\nagent: {log: jsn}", ":2:14", "unknown value", "did you mean json?"},
		{"a context's key at the top", "brokers: ['a:1']\ndsn: host=h\n", ":1:1", `unknown key "brokers"`, "contexts: {NAME: {brokers: …}}"},
		{"another key at the top", "contexts: {d: {}}\ndsn: host=h\n", ":2:1", `unknown key "dsn"`, "contexts: {NAME: {dsn: …}}"},
		{"an agent's key at the top", "contexts: {d: {}}\nlease: 10s\n", ":2:1", `unknown key "lease"`, "agent: {lease: …}"},
		{"no contexts", "current: x\n", ":1:1", "missing", "add contexts"},
		{"empty", "", ":1:1", "empty", ""},
		{"not YAML", "contexts: {dev: [}\n", ":1", "not YAML", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := world(t, nil)
			path := filepath.Join(e.Dir, "kappactl.yaml")
			put(t, path, tt.text)
			_, err := config.Load(nil, e)
			var ps job.Problems
			if !errors.As(err, &ps) {
				t.Fatalf("got %v, want problems", err)
			}
			text := ps.Error()
			if !strings.Contains(text, path+tt.place) || !strings.Contains(text, tt.cause) || !strings.Contains(text, tt.cure) {
				t.Errorf("got %s", text)
			}
			if strings.Contains(text, "hunter2") {
				t.Errorf("a password shows: %s", text)
			}
		})
	}
}

func TestWrongFlagsAndVariablesNameThemselves(t *testing.T) {
	tests := []struct {
		name, want string
		flags      config.Flags
		vars       map[string]string
	}{
		{name: "broker", flags: config.Flags{"brokers": "a"}, want: `--brokers: "a" is not HOST:PORT`},
		{name: "dsn", vars: map[string]string{"KAPPACTL_DSN": "hunter2"}, want: "KAPPACTL_DSN: the connection string cannot be read"},
		{name: "dsn url", flags: config.Flags{"dsn": "postgres://u@[h/d"}, want: "--dsn: the connection string cannot be read"},
		{name: "password in a flag's url", flags: config.Flags{"dsn": "postgres://u:hunter2@h/d"}, want: "--dsn holds a password"},
		{name: "password in a flag's url, not readable", flags: config.Flags{"dsn": "postgres://u:hunter2@[h/d"}, want: "--dsn holds a password"},
		{name: "password in a flag's pairs", flags: config.Flags{"dsn": "host=h password='hunter2'"}, want: "--dsn holds a password"},
		{name: "password in a flag's query", flags: config.Flags{"dsn": "postgres://h/d?user=u&password=hunter2"}, want: "--dsn holds a password"},
		{name: "http", flags: config.Flags{"http": "8080"}, want: `--http: "8080" is not HOST:PORT`},
		{name: "replays", flags: config.Flags{"replays": "none"}, want: `--replays: "none" is not a count`},
		{name: "poll", vars: map[string]string{"KAPPACTL_POLL": "1h"}, want: "KAPPACTL_POLL: 1h is out of range"},
		{name: "tls", vars: map[string]string{"KAPPACTL_KAFKA_TLS": "maybe"}, want: "KAPPACTL_KAFKA_TLS"},
		{name: "sasl user alone", vars: map[string]string{"KAPPACTL_KAFKA_SASL_USER": "u"}, want: "no mechanism"},
		{name: "no such file", flags: config.Flags{"config": "missing.yaml"}, want: "settings cannot be read"},
		{name: "context without file", flags: config.Flags{"context": "dev"}, want: "there is no settings file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := config.Load(tt.flags, world(t, tt.vars))
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			var refusal *job.Refusal
			var ps job.Problems
			if !errors.As(err, &ps) && (!errors.As(err, &refusal) || refusal.Code != job.ExitUsage) {
				t.Errorf("%T is not a usage error", err)
			}
		})
	}
}

func TestSecretsDoNotPrint(t *testing.T) {
	s := config.Settings{
		DSN:      "postgres://u:hunter2@h/d?password=hunter2",
		Password: config.Source{Value: "hunter2"},
		Kafka:    config.Kafka{SASL: config.SASL{Password: config.Source{Value: "hunter2"}}},
	}
	pair := config.DSN("host=h password='hunter2\\' hunter2' user=u")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		if text := fmt.Sprintf(verb+" "+verb+" "+verb, s, s.Password.Value, pair); strings.Contains(text, "hunter2") || strings.Contains(text, fmt.Sprintf("%x", "hunter2")) {
			t.Errorf("%s shows a password: %s", verb, text)
		}
	}
	if string(s.Password.Value) != "hunter2" {
		t.Error("the secret itself is lost")
	}
}
