package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/config"
)

// TestSettingsInSync compares the tables of docs/settings.md with the settings; -update writes them.
func TestSettingsInSync(t *testing.T) {
	const begin, end = "<!-- settings -->\n", "<!-- /settings -->"
	path := filepath.Join("..", "..", "docs", "settings.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	got, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s lacks the marks of its tables", path)
	}
	want := "\n" + settingTables() + "\n"
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil { //nolint:gosec // documentation
			t.Fatal(err)
		}
		got = want
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("run: make docs\n%s", diff)
	}
}

// The file that the page shows is read like any other, and shows every key.
func TestTheSettingsFileOfThePageLoads(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "settings.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	file, _, _ := strings.Cut(rest, "```")
	path := filepath.Join(t.TempDir(), "kappactl.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, context := range []string{"dev", "prod"} {
		if _, err := config.Load(config.Flags{"config": path, "context": context}, config.Env{}); err != nil {
			t.Errorf("context %s: %v", context, err)
		}
	}
	secret := map[string]bool{"kafka.sasl.password": true, "archive.s3.secret_access_key": true} // never in the file
	for _, o := range config.Table() {
		key := o.Name[strings.LastIndex(o.Name, ".")+1:]
		if !secret[o.Name] && !strings.Contains(file, key+":") {
			t.Errorf("the file of the page lacks %s", o.Name)
		}
	}
}
