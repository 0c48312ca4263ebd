package ledger_test

import (
	"os"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/reprocess/ledger"
)

func TestEveryKindOfEventIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/cli-output.md")
	if err != nil {
		t.Fatal(err)
	}
	_, history, found := strings.Cut(string(text), "\n## history\n")
	history, _, _ = strings.Cut(history, "\n## ")
	if !found {
		t.Fatal("docs/cli-output.md has no section about history")
	}
	for _, kind := range ledger.EventKinds() {
		if !strings.Contains(history, "`"+string(kind)+"`") {
			t.Errorf("docs/cli-output.md does not list the kind %q", kind)
		}
	}
}

func TestAnEventOfAnUnknownKindIsNotWritten(t *testing.T) {
	pool := control(t)
	deployed(t, pool, job.RollingOut)
	for _, kind := range append(ledger.EventKinds(), "promotd") {
		err := ledger.AddEvent(t.Context(), pool, ledger.Entry{Job: "orders", Number: 1, Kind: kind})
		if known := kind != "promotd"; known != (err == nil) {
			t.Errorf("an event of kind %q: %v", kind, err)
		}
	}
}
