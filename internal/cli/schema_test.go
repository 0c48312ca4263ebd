package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSchemaPrintsThePublishedSchema(t *testing.T) {
	want, err := os.ReadFile(filepath.Join("..", "..", "docs", "job.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"schema"}, {"schema", "-o", "json"}} {
		code, out, errs := runCLI(t, args...)
		if code != 0 || errs != "" || !json.Valid([]byte(out)) {
			t.Errorf("%v: exit %d, stderr %q", args, code, errs)
		}
		if diff := cmp.Diff(string(want), out); diff != "" {
			t.Error(diff)
		}
	}
}
