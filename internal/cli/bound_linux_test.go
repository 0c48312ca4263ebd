package cli

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/kappactl/kappactl/internal/query"
)

// TestAnAllocationFarBeyondAgentMemoryFails, in a process of its own, as an error of the engine: the process goes on.
func TestAnAllocationFarBeyondAgentMemoryFails(t *testing.T) {
	const child = "KAPPACTL_TEST_BOUND"
	if os.Getenv(child) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v") //nolint:gosec // ourselves
		cmd.Env = append(os.Environ(), child+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	if err := boundData(100_000_000); err != nil {
		t.Fatal(err)
	}
	s, err := query.Open(t.Context(), query.Config{})
	if err != nil {
		t.Fatal(err)
	}
	run := func(sql string) error {
		return s.Run(t.Context(), sql, nil, func(arrow.RecordBatch) error { return nil })
	}
	// A million elements a row: no single value is too much.
	err = run(`SELECT max(length(l)) FROM (SELECT range(999999 - i) AS l FROM (SELECT unnest(range(2000)) AS i)) WHERE l[3] = 2`)
	var resource *query.ResourceError
	if !errors.As(err, &resource) || !resource.Costly {
		t.Errorf("16 GB of lists: %v", err)
	}
	if err := run(`SELECT 1`); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
