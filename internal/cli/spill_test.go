package cli

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSpillFoldersOfTheDeadAreRemovedAndThoseOfTheLivingKept(t *testing.T) {
	dir := t.TempDir()
	dead := filepath.Join(dir, "kappactl-spill-1")
	if err := os.MkdirAll(filepath.Join(dead, "duckdb-1"), 0o700); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, "of-somebody")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	living, err := newSpillFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	next, err := newSpillFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{dead: false, other: true, living.path: true, next.path: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s is there: %t, want %t", path, err == nil, want)
		}
	}
	for _, s := range []*spillFolder{living, next} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(s.path); err == nil {
			t.Errorf("%s is still there", s.path)
		}
	}
}
