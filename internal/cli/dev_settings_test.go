package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kappactl/kappactl/internal/config"
)

// TestDevTakesTheAgentSettingsOfItsFileAndOfVariables: a stack is not led to other servers by them, and leaves them in its file.
func TestDevTakesTheAgentSettingsOfItsFileAndOfVariables(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kappactl.yaml")
	const text = `current: dev
contexts:
  dev: {brokers: ["127.0.0.1:1"], dsn: "host=127.0.0.1 dbname=own", http: "127.0.0.1:2", checks: {role: inspector}}
agent: {memory: 300MB, lease: 4s, replays: 7}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	sys, _, _ := fakeSystem(map[string]string{
		"KAPPACTL_MEMORY": "200MB", "KAPPACTL_LOG": "json", "KAPPACTL_TEMP": "spill", "KAPPACTL_BROKERS": "kafka.example:9092",
		"KAPPACTL_DSN": "host=db.example", "KAPPACTL_SCHEMA": "other", "KAPPACTL_CONTEXT": "prod", "KAPPACTL_CONFIG": "/elsewhere.yaml",
		"PGHOST": "db.example", "KAPPACTL_HTTP": "0.0.0.0:80", "KAPPACTL_KAFKA_TLS": "true",
	})
	a := &app{sys: sys}
	s, err := a.stackSettings(path)
	if err != nil {
		t.Fatal(err)
	}
	if s.Agent.Memory != 200_000_000 || s.Agent.Log != "json" || s.Agent.Lease != 4*time.Second || s.Agent.Replays != 7 ||
		!strings.HasSuffix(s.Agent.Temp, "spill") || s.Checks.Role != "inspector" {
		t.Errorf("%+v %+v", s.Agent, s.Checks)
	}
	if len(s.Brokers) != 1 || s.Brokers[0] != "127.0.0.1:1" || !strings.Contains(string(s.DSN), "own") || s.Schema != "kappactl" ||
		s.Kafka.TLS.Enabled || s.HTTP != "127.0.0.1:2" {
		t.Errorf("it is led elsewhere: %+v", s)
	}
	if err := config.Write(path, config.Settings{Context: "dev", Brokers: []string{"127.0.0.1:3"}, DSN: s.DSN, Schema: "kappactl"}); err != nil {
		t.Fatal(err)
	}
	again, err := a.stackSettings(path)
	if err != nil || again.Agent.Lease != 4*time.Second || again.Agent.Replays != 7 || again.Checks.Role != "inspector" || again.Brokers[0] != "127.0.0.1:3" {
		t.Errorf("a start changed what people wrote: %+v %v", again, err)
	}
}
