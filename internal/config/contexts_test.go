package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/config"
)

func TestEverySettingIsShownWithItsOrigin(t *testing.T) {
	e := world(t, map[string]string{"KAPPACTL_KAFKA_SASL_PASSWORD": "sesame", "KAPPACTL_SCHEMA": "mine"})
	put(t, filepath.Join(e.Dir, "kappactl.yaml"), whole)
	s := load(t, config.Flags{"dsn": "host=other user=u"}, e)
	shown := map[string]config.Shown{}
	for _, one := range s.Show() {
		shown[one.Name] = one
		if one.Value != nil && strings.Contains(*one.Value, "sesame") {
			t.Errorf("%s shows a secret: %s", one.Name, *one.Value)
		}
		if (one.Value == nil) != (one.Origin == "not set") {
			t.Errorf("%+v: a setting without a value is not set, and only such a one", one)
		}
	}
	for _, o := range config.Table() {
		if _, found := shown[o.Name]; !found {
			t.Errorf("%s is a setting and not shown", o.Name)
		}
	}
	file := filepath.Join(e.Dir, "kappactl.yaml")
	for name, want := range map[string][2]string{
		"context": {"dev", file + ":1"}, "file": {file, "the working folder"}, "brokers": {"127.0.0.1:19092,127.0.0.1:19093", file + ":4"},
		"dsn": {"host=other user=u", "--dsn"}, "schema": {"mine", "KAPPACTL_SCHEMA"}, "kafka.sasl.password": {"***", "KAPPACTL_KAFKA_SASL_PASSWORD"},
		"agent.memory": {"512MiB", file + ":17"}, "kafka.sasl.user": {"app", file + ":5"},
	} {
		got := shown[name]
		if got.Value == nil || *got.Value != want[0] || got.Origin != want[1] {
			t.Errorf("%s: %v from %q, want %v", name, got.Value, got.Origin, want)
		}
	}
}

func TestContextsOfAFile(t *testing.T) {
	e := world(t, map[string]string{"KAPPACTL_CONTEXT": "prod"})
	put(t, filepath.Join(e.Dir, "kappactl.yaml"), whole)
	got, err := config.Contexts(config.Flags{}, e)
	want := []config.ContextInfo{
		{Name: "dev", Brokers: []string{"127.0.0.1:19092", "127.0.0.1:19093"}, DSN: "host=127.0.0.1 dbname=app user=app", Schema: "control"},
		{Name: "prod", Current: true, Brokers: []string{"kafka:9092"}, DSN: "postgres://app@db/app", Schema: "kappactl"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	if _, err := config.Contexts(config.Flags{}, world(t, nil)); err == nil {
		t.Error("no file, and no error")
	}
}

func TestUseContextChangesOneKeyAndKeepsComments(t *testing.T) {
	const rest = "contexts:\n  dev: {dsn: \"host=a\"} # mine\n  \"1\": {dsn: \"host=b\"}\n"
	for _, c := range []struct{ before, name, after string }{
		{"# team file\ncurrent: dev # the usual one\n" + rest, "1", "# team file\ncurrent: \"1\" # the usual one\n" + rest},
		{"# team file\n\ncurrent: 'dev'\n" + rest, "1", "# team file\n\ncurrent: \"1\"\n" + rest},
		{"# no key yet\n\n" + rest + "# end\n", "dev", "# no key yet\n\ncurrent: dev\n" + rest + "# end\n"},
		{strings.ReplaceAll("current: dev # x\n"+rest, "\n", "\r\n"), "1", "current: \"1\" # x\n" + rest},
		{rest + "current: \"1\"", "dev", rest + "current: dev\n"},
		{`{current: dev, contexts: {dev: {dsn: "host=ä"}, "1": {dsn: "host=b"}}}`, "1", `{current: "1", contexts: {dev: {dsn: "host=ä"}, "1": {dsn: "host=b"}}}` + "\n"},
		{"current: >-\n  dev\n" + rest, "1", "current: \"1\"\n" + rest},
	} {
		e := world(t, nil)
		path := filepath.Join(e.Dir, "kappactl.yaml")
		put(t, path, c.before)
		if _, _, err := config.UseContext(config.Flags{}, e, c.name); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(c.after, read(t, path)); diff != "" {
			t.Error(diff)
		}
		if s := load(t, config.Flags{}, e); s.Context != c.name {
			t.Errorf("context %q, want %q", s.Context, c.name)
		}
	}
}

func TestUseContextOfAnUnknownNameChangesNothing(t *testing.T) {
	const text = "contexts:\n  dev: {dsn: \"host=a\"}\n"
	e := world(t, nil)
	path := filepath.Join(e.Dir, "kappactl.yaml")
	put(t, path, text)
	_, _, err := config.UseContext(config.Flags{}, e, "prod")
	if err == nil || !strings.Contains(err.Error(), "there is no context prod") || read(t, path) != text {
		t.Errorf("%v; the file is %q", err, read(t, path))
	}
}

func TestUseContextKeepsLinksAndPermissions(t *testing.T) {
	e := world(t, nil)
	real, link := filepath.Join(e.UserDir, "real.yaml"), filepath.Join(e.Dir, "kappactl.yaml")
	put(t, real, "contexts:\n  dev: {dsn: \"host=a\"}\n")
	if err := os.Chmod(real, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	if _, _, err := config.UseContext(config.Flags{}, e, "dev"); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(link)
	if err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info, err)
	}
	if info, err = os.Stat(real); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the file is %v, %v", info, err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestHooksOfAnAgent(t *testing.T) {
	e := world(t, map[string]string{"KAPPACTL_WEBHOOK_SECRET": "sesame"})
	path := filepath.Join(e.Dir, "kappactl.yaml")
	put(t, path, `contexts: {dev: {dsn: "host=a"}}
agent:
  hooks: [{name: gate, on: [before_promote], jobs: [counts], command: [/bin/gate, -x], timeout: 5s}]
  webhooks: [{name: chat, url: "https://chat/x", secret_file: s}, {name: other, url: "https://chat/y"}]
`)
	s := load(t, config.Flags{}, e)
	if len(s.Hooks) != 3 || s.Hooks[0].Timeout != 5*time.Second || s.Hooks[1].Timeout != config.DefaultHookTimeout ||
		s.Hooks[1].Secret.File != filepath.Join(e.Dir, "s") || string(s.Hooks[2].Secret.Value) != "sesame" {
		t.Errorf("%+v", s.Hooks)
	}
	for text, want := range map[string]string{
		`hooks: [{name: a, command: [x]}], webhooks: [{name: a, url: "https://h/"}]`: `two hooks are named "a"`,
		`hooks: [{name: a}]`:                              "missing",
		`hooks: [{name: a, command: [x], on: [promote]}]`: "on[0]",
		`webhooks: [{name: a, url: "ftp://h/"}]`:          "no http or https address",
		`webhooks: [{name: a, url: "https://u:p@h/"}]`:    "holds a user or a password",
	} {
		put(t, path, "contexts: {dev: {dsn: \"host=a\"}}\nagent: {"+text+"}\n")
		if _, err := config.Load(config.Flags{}, e); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
