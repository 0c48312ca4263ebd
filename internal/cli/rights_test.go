package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/pg"
)

func TestRightsInSync(t *testing.T) {
	const path = "../../docs/rights.sql"
	want := pg.RightsSQL(pg.DefaultSchema, "public")
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what init --print ends with: run make docs", path)
	}
}

func TestInitPrintEndsWithTheRights(t *testing.T) {
	code, out, errs := runCLI(t, "init", "--print", "--schema", "My Control")
	if code != 0 || errs != "" {
		t.Fatalf("exit %d: %s", code, errs)
	}
	if rights := pg.RightsSQL("My Control", "public"); !strings.HasSuffix(out, rights) {
		t.Errorf("it ends with %q", out[max(0, len(out)-200):])
	}
	for _, want := range []string{`CREATE SCHEMA IF NOT EXISTS "My Control";`, "\n" + `GRANT USAGE ON SCHEMA "My Control" TO kappactl_agent`} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
}
