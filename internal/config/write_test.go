package config_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/config"
)

func TestWhatIsWrittenLoadsAgain(t *testing.T) {
	e := world(t, nil)
	put(t, filepath.Join(e.Dir, "first.yaml"), whole)
	first := load(t, config.Flags{"config": "first.yaml"}, e)
	path := filepath.Join(e.Dir, "second.yaml")
	if err := config.Write(path, first); err != nil {
		t.Fatal(err)
	}
	second := load(t, config.Flags{"config": path}, e)
	ignore := cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "origins" || p.String() == "File" }, cmp.Ignore())
	if diff := cmp.Diff(first, second, ignore); diff != "" {
		t.Error(diff)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
}

func TestWriteReplacesAndLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "kappactl.yaml")
	put(t, path, "contexts: {dev: {dsn: 'host=old', dsn_password_file: old}}\n")
	s := config.Settings{Brokers: []string{"127.0.0.1:1"}, DSN: "postgres://u@127.0.0.1:2/d", HTTP: "127.0.0.1:3"}
	if err := config.Write(path, s); err != nil {
		t.Fatal(err)
	}
	got := load(t, config.Flags{"config": path}, world(t, nil))
	if got.Context != "dev" || string(got.DSN) != "postgres://u@127.0.0.1:2/d" || got.Agent.Lease != 10*time.Second {
		t.Errorf("got %+v", got)
	}
	if got.Password.File != "" {
		t.Errorf("the password of the old connection stays: %s", got.Password.File)
	}
	for _, secret := range []config.Settings{{DSN: "host=h password=x"}, {Password: config.Source{Value: "x"}}} {
		if err := config.Write(path, secret); err == nil {
			t.Error("a password was written")
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v %v", entries, err)
	}
}

func TestWriteLeavesWhatPeopleAdded(t *testing.T) {
	e := world(t, nil)
	path := filepath.Join(e.Dir, "kappactl.yaml")
	put(t, path, `# my stack
current: prod
contexts:
  dev: # the local one
    dsn: host=old # moves
    checks:
      role: checker
  prod:
    dsn: host=prod
# tuned
agent:
  lease: 20s # slow disk
  hooks:
    - {name: tell, command: [/bin/true]}
`)
	s := config.Settings{Brokers: []string{"127.0.0.1:1"}, DSN: "host=new"}
	for range 2 { // the second changes nothing
		if err := config.Write(path, s); err != nil {
			t.Fatal(err)
		}
	}
	want := `# my stack
current: prod
contexts:
  dev: # the local one
    dsn: host=new # moves
    checks:
      role: checker
    brokers: ['127.0.0.1:1']
  prod:
    dsn: host=prod
# tuned
agent:
  lease: 20s # slow disk
  hooks:
    - {name: tell, command: [/bin/true]}
`
	if diff := cmp.Diff(want, read(t, path)); diff != "" {
		t.Error(diff)
	}
	const wrong = "contexts: {dev: {broker: [a]}}\n"
	put(t, path, wrong)
	if err := config.Write(path, s); err == nil || read(t, path) != wrong {
		t.Errorf("a file with a fault: %v, now %q", err, read(t, path))
	}
}

func TestPasswordsComeFromFileCommandOrValue(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	put(t, file, "hunter2\r\nsecond line\n")
	empty := filepath.Join(t.TempDir(), "empty")
	put(t, empty, "\nhunter2\n")
	tests := []struct {
		name   string
		source config.Source
		want   string
		fault  string
	}{
		{name: "none"},
		{name: "value", source: config.Source{Value: "hunter2"}, want: "hunter2"},
		{name: "file", source: config.Source{File: file}, want: "hunter2"},
		{name: "command", source: config.Source{Command: []string{"cat", file}}, want: "hunter2"},
		{name: "no file", source: config.Source{File: file + "x"}, fault: "read password file"},
		{name: "empty file", source: config.Source{File: empty}, fault: "the first line is empty"},
		{name: "failing command", source: config.Source{Command: []string{"cat", file + "x"}}, fault: "run password command cat"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.source.Read(context.Background())
			if string(got) != tt.want {
				t.Errorf("got %d bytes", len(got))
			}
			if (err == nil) != (tt.fault == "") || err != nil && (!strings.Contains(err.Error(), tt.fault) || strings.Contains(err.Error(), "hunter2")) {
				t.Errorf("got %v, want %q", err, tt.fault)
			}
		})
	}
}
