// Package examples tests the job files in this folder: they are what a reader copies first.
package examples_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
)

// files lists job files; an empty list would make every test below pass for nothing.
func files(t *testing.T, pattern string, atLeast int) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) < atLeast {
		t.Fatalf("%s: %d files, %v; want %d or more", pattern, len(paths), err, atLeast)
	}
	return paths
}

func TestEveryExampleIsAJobFileOfThisRelease(t *testing.T) {
	for _, path := range append(files(t, "*.yaml", 5), files(t, "refused/*.yaml", 8)...) {
		t.Run(path, func(t *testing.T) {
			s, err := job.Read(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Supported(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestEveryExamplePointsToTheReferenceAndRefusedOnesSayWhy(t *testing.T) {
	for _, path := range append(files(t, "*.yaml", 5), files(t, "refused/*.yaml", 8)...) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), "# kappactl job file; every key is described in docs/job-file.md\n") {
			t.Errorf("%s: the first line does not say what this is", path)
		}
		_, modeline, _ := strings.Cut(string(text), "\n# yaml-language-server: $schema=")
		schema, _, _ := strings.Cut(modeline, "\n")
		if _, err := os.Stat(filepath.Join(filepath.Dir(path), schema)); schema == "" || err != nil {
			t.Errorf("%s: no line points editors to the schema: %v", path, err)
		}
		if filepath.Dir(path) == "refused" && (!strings.Contains(string(text), "# Refused: ") || !strings.Contains(string(text), "Instead: ")) {
			t.Errorf("%s: says neither why nor what to write instead", path)
		}
	}
}

func TestNextVersionsServeTheSameViewWithOtherResults(t *testing.T) {
	for first, next := range map[string]string{"pageviews.yaml": "pageviews-v2.yaml", "flights.yaml": "flights-v2.yaml"} {
		a, err := job.Read(first)
		if err != nil {
			t.Fatal(err)
		}
		b, err := job.Read(next)
		if err != nil {
			t.Fatal(err)
		}
		if a.Job != b.Job || a.Serve.View != b.Serve.View || a.Hash(1) == b.Hash(1) {
			t.Errorf("%s and %s: job %s and %s, view %s and %s, hashes %s and %s", first, next, a.Job, b.Job, a.Serve.View, b.Serve.View, a.Hash(1), b.Hash(1))
		}
	}
}
