package e2e_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/kafkatest"
)

// TestARunThatMeetsADamagedFileChangesNothing: whatever became of a file, the run is refused with its name, the live generation goes on
// serving, and verify names the file.
func TestARunThatMeetsADamagedFileChangesNothing(t *testing.T) { // pitfall 20, B08
	t.Parallel()
	brokers := kafkatest.Fake(t)
	w := newWorld(t, brokers)
	const all = 2000
	topic := clicksTopic(t, brokers, all)
	host := w.serve()
	w.ok("deploy", w.file("lambda.yaml", "mode: lambda\n"+fmt.Sprintf(clicksJob, topic, 0)+
		fmt.Sprintf("archive: {location: \"file://%s/archive\", roll: {every: 1s}}\n", w.dir)))
	w.archivedUpTo(topic, all)
	for p := range int32(4) {
		end, _ := kafkatest.Ends(t, brokers, topic, p)
		kafkatest.DeleteRecords(t, brokers, topic, p, end)
	}
	w.ok("batch", "run", "clicks", "--wait")
	var files []struct{ Name string }
	w.into(&files, "archive", "list", topic)
	path := filepath.Join(w.dir, "archive", files[0].Name)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/3] ^= 1
	for _, c := range []struct {
		name    string
		content []byte
	}{{"0 bytes", nil}, {"4 bytes", whole[:4]}, {"without its last byte", whole[:len(whole)-1]}, {"one bit flipped", flipped}} {
		if err := os.WriteFile(path, c.content, 0o600); err != nil {
			t.Fatal(err)
		}
		host.kill() // it may hold a copy of the file, whose hash was right
		host = w.serve()
		if o := w.code(7, "batch", "run", "clicks", "--wait"); !strings.Contains(o.stderr, filepath.Base(path)) {
			t.Errorf("%s: the run does not name the file: %s", c.name, o.stderr)
		}
		if o := w.code(5, "archive", "verify", topic); !strings.Contains(o.stdout+o.stderr, filepath.Base(path)) {
			t.Errorf("%s: verify does not name the file: %s%s", c.name, o.stdout, o.stderr)
		}
		if n := w.sum("SELECT sum(clicks)::bigint FROM clicks_hourly"); n != all {
			t.Errorf("%s: %d clicks are served, want %d", c.name, n, all)
		}
		if live := w.sum("SELECT generation FROM clicks__v1_gen"); live != 1 {
			t.Errorf("%s: generation %d is live", c.name, live)
		}
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	w.ok("batch", "run", "clicks", "--wait")
	w.equal("clicks")
}
