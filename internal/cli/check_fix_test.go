package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
)

// pasted is a job file with a query as people paste it.
const pasted = `# orders of the shop
job: orders
source:
  topics: [orders]
  columns: {shop: text, price: integer, at: timestamptz}
query: |
  SELECT shop, median(price), count(*)
  FROM source GROUP BY shop ORDER BY shop
serve:
  view: public.orders # of today
`

func TestCheckFixWritesOutWhatIsServed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "orders.yaml")
	if err := os.WriteFile(file, []byte(pasted), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := runCLI(t, "check", file, "--fix")
	for _, want := range []string{"# orders of the shop\n", "query: |\n  SELECT shop, median(price) AS median_price, count_star() AS count_star\n", "GROUP BY shop\n", "distinct_max: 1000\n", "# of today"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit %d, no %q in\n%s%s", code, want, out, errs)
		}
	}
	if strings.Contains(out, "ORDER BY") {
		t.Errorf("ORDER BY is still there:\n%s", out)
	}
	if kept, err := os.ReadFile(file); err != nil || string(kept) != pasted { //nolint:gosec // a path of this test
		t.Errorf("--fix alone changed the file: %v\n%s", err, kept)
	}
	if code, _, errs := runCLI(t, "check", file, "--fix", "-w"); code != 0 || !strings.Contains(errs, "query, distinct_max written") {
		t.Errorf("exit %d\n%s", code, errs)
	}
	written, err := os.ReadFile(file) //nolint:gosec // a path of this test
	if err != nil || string(written) != out {
		t.Errorf("--write wrote %v\n%s\nnot\n%s", err, written, out)
	}
	if code, _, errs := runCLI(t, "check", file); code != 0 || strings.Contains(errs, "warning") {
		t.Errorf("exit %d\n%s", code, errs)
	}
	if code, again, errs := runCLI(t, "check", file, "--fix"); code != 0 || again != string(written) || !strings.Contains(errs, "nothing to change") {
		t.Errorf("exit %d\n%s%s", code, again, errs)
	}
}

func TestCheckFixRefusesWhatItCannotWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "orders.yaml")
	text := strings.Replace(pasted, "median(price)", "max(${WHAT})", 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"check", file, "--write"},
		{"check", "-", "--fix", "--write"},
		{"check", file, "--fix", "--set", "WHAT=price"},
		{"check", filepath.Join("..", "..", "examples", "refused", "join.yaml"), "--fix"},
	} {
		if code, out, errs := runCLI(t, args...); code != job.ExitUsage || out != "" || errs == "" {
			t.Errorf("%v: exit %d\n%s%s", args, code, out, errs)
		}
	}
}
