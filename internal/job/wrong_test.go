package job_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with the file, or writes the file with -update.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (run the test with -update when the change is meant):\n%s", path, diff)
	}
}

func TestWrongJobFilesAreRefusedWithPlaceCauseAndCure(t *testing.T) {
	paths, err := filepath.Glob("testdata/wrong/*.yaml")
	if err != nil || len(paths) < 35 {
		t.Fatalf("%d wrong files, %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			_, err = job.Parse("job.yaml", text)
			var ps job.Problems
			if !errors.As(err, &ps) || len(ps) == 0 {
				t.Fatalf("got %v, want problems", err)
			}
			for _, p := range ps {
				if p.Line < 1 || p.Column < 1 || p.Cause == "" || p.Cure == "" {
					t.Errorf("place, cause or cure is missing: %+v", p)
				}
			}
			golden(t, strings.TrimSuffix(path, ".yaml")+".golden", ps.Error()+"\n")
		})
	}
}
