package config_test

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/config"
	"github.com/kappactl/kappactl/internal/job"
)

const whole = `current: dev
contexts:
  dev:
    brokers: ["127.0.0.1:19092", "127.0.0.1:19093"]
    kafka: {tls: {ca_file: ca.pem}, sasl: {mechanism: SCRAM-SHA-512, user: app, password_file: kafka.password}}
    dsn: "host=127.0.0.1 dbname=app user=app"
    dsn_password_file: db.password
    schema: control
    http: 127.0.0.1:9999
    archive:
      location: s3://bucket/prefix
      keep_replaced: 30d
      s3: {endpoint: "https://store:9000/", region: eu-1, addressing: path, ca_file: store.pem, access_key_id: key, secret_access_key_file: store.secret}
  prod:
    brokers: ["kafka:9092"]
    dsn: postgres://app@db/app
agent: {memory: 512MiB, temp: spill, replays: 3, lease: 20s, heartbeat: 2s, poll: 1s, log: json}
`

// world is an Env in an empty working folder, with the given variables.
func world(t *testing.T, vars map[string]string) config.Env {
	t.Helper()
	return config.Env{
		Getenv: func(name string) string { return vars[name] }, Dir: t.TempDir(), UserDir: t.TempDir(), TempDir: "/temp",
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, flags config.Flags, e config.Env) config.Settings {
	t.Helper()
	s, err := config.Load(flags, e)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEveryKeyOfTheFileArrives(t *testing.T) {
	e := world(t, nil)
	put(t, filepath.Join(e.Dir, "kappactl.yaml"), whole)
	s := load(t, nil, e)
	want := config.Settings{
		Context: "dev", File: filepath.Join(e.Dir, "kappactl.yaml"), Brokers: []string{"127.0.0.1:19092", "127.0.0.1:19093"},
		Kafka: config.Kafka{
			TLS:  config.TLS{Enabled: true, CAFile: filepath.Join(e.Dir, "ca.pem")},
			SASL: config.SASL{Mechanism: "SCRAM-SHA-512", User: "app", Password: config.Source{File: filepath.Join(e.Dir, "kafka.password")}},
		},
		DSN: "host=127.0.0.1 dbname=app user=app", Password: config.Source{File: filepath.Join(e.Dir, "db.password")},
		Schema: "control", HTTP: "127.0.0.1:9999",
		Archive: config.Archive{Location: "s3://bucket/prefix", KeepReplaced: 30 * 24 * time.Hour, S3: config.S3{
			Endpoint: "https://store:9000", Region: "eu-1", Addressing: "path", CAFile: filepath.Join(e.Dir, "store.pem"),
			AccessKeyID: "key", Secret: config.Source{File: filepath.Join(e.Dir, "store.secret")},
		}},
		Agent: config.Agent{
			Memory: 512 << 20, Temp: filepath.Join(e.Dir, "spill"), Replays: 3, Lease: 20 * time.Second,
			Heartbeat: 2 * time.Second, Poll: time.Second, Log: "json",
		},
	}
	if diff := cmp.Diff(want, s, cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "origins" }, cmp.Ignore())); diff != "" {
		t.Error(diff)
	}
	if got, want := s.Origin("dsn"), s.File+":6"; got != want {
		t.Errorf("origin of dsn: %s, want %s", got, want)
	}
}

func TestFlagBeatsVariableBeatsFileBeatsDefault(t *testing.T) {
	vars := map[string]string{"KAPPACTL_SCHEMA": "from_env", "KAPPACTL_BROKERS": "env:1"}
	e := world(t, vars)
	put(t, filepath.Join(e.Dir, "kappactl.yaml"), whole)
	s := load(t, config.Flags{"brokers": "flag:1,flag:2", "timeout": "5s"}, e)
	got := map[string]string{}
	for _, name := range []string{"brokers", "schema", "http", "agent.lease", "agent.poll", "kafka.sasl.user"} {
		got[name] = strings.TrimPrefix(s.Origin(name), s.File)
	}
	want := map[string]string{
		"brokers": "--brokers", "schema": "KAPPACTL_SCHEMA", "http": ":9", "agent.lease": ":17", "agent.poll": ":17", "kafka.sasl.user": ":5",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"flag:1", "flag:2"}, s.Brokers); diff != "" || s.Schema != "from_env" {
		t.Error(diff, s.Schema)
	}
}

func TestWithoutAnySourceDefaultsHoldAndNothingIsReachable(t *testing.T) {
	e := world(t, nil)
	e.Root = fstest.MapFS{
		"proc/meminfo":             {Data: []byte("MemFree: 1 kB\nMemTotal:        16000000 kB\n")},
		"sys/fs/cgroup/memory.max": {Data: []byte("536870912\n")},
	}
	s := load(t, nil, e)
	want := config.Agent{Memory: 256 << 20, Temp: "/temp", Replays: 2, Lease: 10 * time.Second, Heartbeat: time.Second, Poll: 500 * time.Millisecond, Log: "text"}
	if diff := cmp.Diff(want, s.Agent); diff != "" {
		t.Error(diff)
	}
	if s.Schema != "kappactl" || s.HTTP != "127.0.0.1:8080" || s.Origin("schema") != "default" {
		t.Errorf("schema %s from %s, http %s", s.Schema, s.Origin("schema"), s.HTTP)
	}
	for _, err := range []error{s.NeedBrokers(), s.NeedDSN()} {
		var refusal *job.Refusal
		if !errors.As(err, &refusal) || refusal.Code != job.ExitUsage || refusal.Next == "" {
			t.Errorf("got %v, want a refusal with exit 2 and a next step", err)
		}
	}
}

func TestTheFirstFileCountsAlone(t *testing.T) {
	vars := map[string]string{}
	e := world(t, vars)
	file := func(path, broker string) string {
		put(t, path, "contexts: {only: {brokers: ['"+broker+"']}}\n")
		return path
	}
	steps := []struct {
		place func(config.Flags)
		want  string
	}{
		{func(config.Flags) { file(filepath.Join(e.UserDir, "kappactl", "kappactl.yaml"), "user:1") }, "user:1"},
		{func(config.Flags) { file(filepath.Join(e.Dir, "kappactl.yaml"), "work:1") }, "work:1"},
		{func(config.Flags) {
			file(filepath.Join(e.Dir, "env.yaml"), "env:1")
			vars["KAPPACTL_CONFIG"] = "env.yaml"
		}, "env:1"},
		{func(f config.Flags) { f["config"] = file(filepath.Join(e.Dir, "flag.yaml"), "flag:1") }, "flag:1"},
	}
	for _, step := range steps {
		flags := config.Flags{}
		step.place(flags)
		if got := load(t, flags, e).Brokers; len(got) != 1 || got[0] != step.want {
			t.Errorf("got brokers %v, want %s", got, step.want)
		}
	}
}

func TestAFileOfTheRepositoryIsFoundFromItsFolders(t *testing.T) {
	e := world(t, nil)
	root := e.Dir
	put(t, filepath.Join(root, "kappactl.yaml"), "contexts: {only: {dsn: 'host=root'}}\n")
	e.Dir = filepath.Join(root, "jobs", "daily")
	if err := os.MkdirAll(e.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if s := load(t, nil, e); s.File != "" {
		t.Errorf("outside of a repository %s counts", s.File)
	}
	if err := os.Mkdir(filepath.Join(root, "jobs", ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	if s := load(t, nil, e); s.File != "" {
		t.Errorf("%s above the repository counts", s.File)
	}
	if err := os.Rename(filepath.Join(root, "jobs", ".git"), filepath.Join(root, ".git")); err != nil {
		t.Fatal(err)
	}
	if s := load(t, nil, e); string(s.DSN) != "host=root" || s.Origin("file") != "a folder above the working folder" {
		t.Errorf("dsn %q from %s", s.DSN, s.Origin("file"))
	}
	put(t, filepath.Join(e.Dir, "kappactl.yaml"), "contexts: {only: {dsn: 'host=own'}}\n")
	if s := load(t, nil, e); string(s.DSN) != "host=own" {
		t.Errorf("dsn %q, want that of the working folder", s.DSN)
	}
}

func TestFilesOfAConnectionStringAreRelativeToTheSettingsFile(t *testing.T) {
	for dsn, want := range map[string]string{
		"host=h sslcert=a.crt sslkey = 'k e.y' sslrootcert=system": "host=h sslcert='/D/a.crt' sslkey = '/D/k e.y' sslrootcert=system",
		"host=h sslrootcert=/etc/ca.pem passfile=p":                "host=h sslrootcert=/etc/ca.pem passfile='/D/p'",
		"host=h sslkey=it\\'s":                                     "host=h sslkey='/D/it\\'s'",
		"host=h dbname=sslcert":                                    "host=h dbname=sslcert",
		"postgres://u@h/d?sslmode=verify-full&sslrootcert=ca.pem":  "postgres://u@h/d?sslmode=verify-full&sslrootcert=%2FD%2Fca.pem",
		"postgres://u@h/d?sslrootcert=/ca.pem":                     "postgres://u@h/d?sslrootcert=/ca.pem",
	} {
		e := world(t, nil)
		put(t, filepath.Join(e.Dir, "kappactl.yaml"), "contexts:\n  only:\n    dsn: \""+strings.ReplaceAll(dsn, `\`, `\\`)+"\"\n")
		got := strings.NewReplacer(e.Dir, "/D", url.QueryEscape(e.Dir), "%2FD").Replace(string(load(t, nil, e).DSN))
		if got != want {
			t.Errorf("%s: %s, want %s", dsn, got, want)
		}
	}
	e := world(t, map[string]string{"KAPPACTL_DSN": "host=h sslcert=a.crt"})
	if got := string(load(t, nil, e).DSN); got != "host=h sslcert=a.crt" {
		t.Errorf("a variable's files are relative to the working folder: %s", got)
	}
}

func TestContextIsChosenByFlagThenVariableThenFile(t *testing.T) {
	vars := map[string]string{}
	e := world(t, vars)
	put(t, filepath.Join(e.Dir, "kappactl.yaml"), whole)
	if got := load(t, nil, e).Context; got != "dev" {
		t.Errorf("current: got %s", got)
	}
	vars["KAPPACTL_CONTEXT"] = "prod"
	if got := load(t, nil, e); got.Context != "prod" || got.Brokers[0] != "kafka:9092" || !got.Password.IsZero() {
		t.Errorf("variable: got %s with %v", got.Context, got.Brokers)
	}
	if got := load(t, config.Flags{"context": "dev"}, e).Context; got != "dev" {
		t.Errorf("flag: got %s", got)
	}
	_, err := config.Load(config.Flags{"context": "prd"}, e)
	var refusal *job.Refusal
	if !errors.As(err, &refusal) || refusal.Code != job.ExitUsage || !strings.Contains(refusal.Next, "did you mean prod?") {
		t.Errorf("unknown context: got %v", err)
	}
}

func TestPasswordBelongsToItsConnection(t *testing.T) {
	tests := []struct {
		name     string
		vars     map[string]string
		flags    config.Flags
		dsn      string
		password string // base name of the password file
		origin   string
	}{
		{name: "file", dsn: "host=127.0.0.1 dbname=app user=app", password: "db.password", origin: "kappactl.yaml:6"},
		{name: "another database by variable", vars: map[string]string{"KAPPACTL_DSN": "host=other"}, dsn: "host=other", origin: "KAPPACTL_DSN"},
		{name: "another database by flag", flags: config.Flags{"dsn": "postgres://me@other/x"}, dsn: "postgres://me@other/x", origin: "--dsn"},
		{name: "another database by PGHOST", vars: map[string]string{"PGHOST": "other"}, dsn: "", origin: "PGHOST"},
		{name: "PGHOST stands back behind a flag", vars: map[string]string{"PGHOST": "other"}, flags: config.Flags{"dsn": "host=mine"}, dsn: "host=mine", origin: "--dsn"},
		{name: "PGPASSWORD before the file's", vars: map[string]string{"PGPASSWORD": "x"}, dsn: "host=127.0.0.1 dbname=app user=app", origin: "kappactl.yaml:6"},
		{name: "PGUSER only fills", vars: map[string]string{"PGUSER": "x"}, dsn: "host=127.0.0.1 dbname=app user=app", password: "db.password", origin: "kappactl.yaml:6"},
		{
			name: "a password file of its own", vars: map[string]string{"KAPPACTL_DSN": "host=other", "KAPPACTL_DSN_PASSWORD_FILE": "/run/secret"},
			dsn: "host=other", password: "secret", origin: "KAPPACTL_DSN",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := world(t, tt.vars)
			put(t, filepath.Join(e.Dir, "kappactl.yaml"), whole)
			s := load(t, tt.flags, e)
			file := ""
			if s.Password.File != "" {
				file = filepath.Base(s.Password.File)
			}
			if string(s.DSN) != tt.dsn || file != tt.password || filepath.Base(s.Origin("dsn")) != tt.origin {
				t.Errorf("got %q with %q from %s", string(s.DSN), file, s.Origin("dsn"))
			}
			if err := s.NeedDSN(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAShortLeaseGetsFittingHeartbeats(t *testing.T) {
	s := load(t, nil, world(t, map[string]string{"KAPPACTL_LEASE": "1s"}))
	if s.Agent.Heartbeat >= s.Agent.Lease/2 {
		t.Errorf("heartbeat %s for a lease of %s", s.Agent.Heartbeat, s.Agent.Lease)
	}
	_, err := config.Load(nil, world(t, map[string]string{"KAPPACTL_LEASE": "1s", "KAPPACTL_HEARTBEAT": "2s"}))
	if err == nil || !strings.Contains(err.Error(), "KAPPACTL_HEARTBEAT") {
		t.Errorf("got %v, want a refusal that names the variable", err)
	}
}
