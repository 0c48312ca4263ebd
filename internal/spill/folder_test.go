package spill

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
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
	living, err := NewFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	next, err := NewFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{dead: false, other: true, living.Path: true, next.Path: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s is there: %t, want %t", path, err == nil, want)
		}
	}
	for _, s := range []*Folder{living, next} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(s.Path); err == nil {
			t.Errorf("%s is still there", s.Path)
		}
	}
}

func TestAnAgentMaySpillIntoHalfOfTheDiskAndSaysThatItIsLittle(t *testing.T) {
	for free, want := range map[int64]struct {
		room  int64
		warns bool
	}{
		100 << 30: {50 << 30, false}, 2 << 30: {1 << 30, false}, 1 << 30: {512 << 20, true}, 0: {1, true},
	} {
		var said strings.Builder
		s := &Folder{Path: "/var/tmp/kappactl-spill-1"}
		got := s.Limit(1<<30, func(folder string) (int64, error) {
			if folder != s.Path {
				t.Errorf("asked for the disk of %s", folder)
			}
			return free, nil
		}, slog.New(slog.NewTextHandler(&said, nil)))
		if got != want.room || strings.Contains(said.String(), "agent.temp") != want.warns {
			t.Errorf("%d free: room %d, said %q", free, got, said.String())
		}
	}
}
