package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestCommandsBesideEachOther(t *testing.T) {
	for line, want := range map[string][][]string{
		"":           nil,
		"a b":        {{"a", "b"}},
		"a -- b c":   {{"a"}, {"b", "c"}},
		"-- a -- --": {{"a"}},
	} {
		if got := split(strings.Fields(line)); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
	// Each of two commands waits for the other one, so they end only when both run.
	dir := t.TempDir()
	meet := func(mine, other, code string) []string {
		return []string{"sh", "-c", `: >"$0"; until [ -e "$1" ]; do sleep 0.01; done; exit "$2"`, filepath.Join(dir, mine), filepath.Join(dir, other), code}
	}
	t.Setenv("CI", "")
	if code := beside(t.Context(), [][]string{meet("a", "b", "0"), meet("b", "a", "3")}, os.Environ()); code != 3 {
		t.Errorf("exit code %d, want the highest", code)
	}
}

func TestTemporaryFilesAreInMemory(t *testing.T) {
	if got := available("MemTotal: 9 kB\nMemAvailable:   21285256 kB\n"); got != 21285256<<10 {
		t.Errorf("%d bytes", got)
	}
	if got := available("MemTotal: 9 kB\n"); got != 0 {
		t.Errorf("%d bytes of what is not said", got)
	}
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("GOTMPDIR", "")
	before := os.TempDir()
	leave, err := inMemory()
	if err != nil {
		t.Fatal(err)
	}
	folder := os.TempDir()
	if (folder != before) != roomy() || roomy() && os.Getenv("GOTMPDIR") != before {
		t.Errorf("temporary files are in %s, Go's in %q", folder, os.Getenv("GOTMPDIR"))
	}
	if leave(); folder != before {
		if _, err := os.Stat(folder); !os.IsNotExist(err) {
			t.Errorf("%s was left behind: %v", folder, err)
		}
	}
}
