package format

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kappactl/kappactl/internal/job"
)

var update = flag.Bool("update", false, "write the golden files")

// What is decoded is kept beside archived records under the decoder's version: see internal/typed.
func TestAnotherResultIsAnotherVersion(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, kind := range []string{
		"boolean", "smallint", "integer", "bigint", "real", "double precision", "numeric(10,2)", "numeric(38,0)", "text", "character varying(2)", "bytea", "date",
		"time without time zone", "timestamp without time zone", "timestamp with time zone", "uuid", "jsonb",
	} {
		for _, value := range []string{
			"null", "true", "0", "-1", "1.5", "1e2", "1.239", "40000", "9007199254740993", "1e400", `""`, `"true"`, `"1"`, `"1.50"`, `"abc"`, `"\u0000"`,
			`"AAEC"`, `"2026-02-29"`, `"1677-01-01"`, `"12:34:56.1234567"`, `"2026-12-01T10:00:00"`, `"2026-12-01T10:00:00.123456+02:00"`, `"infinity"`,
			`"6F1C0000-0000-4000-8000-000000000001"`, `{"b":1,"a":[1.0,"\u00e9"]}`, `[]`,
		} {
			fmt.Fprintf(&b, "%s %s: %s\n", kind, value, decoded(t, kind, fmt.Sprintf(`{"v":%s}`, value)))
		}
	}
	for _, value := range []string{"", "[]", `{"v":1}x`, `{"v":1,"v":2}`, "\xef\xbb\xbf{}", `{"w":"\ud800"}`} {
		fmt.Fprintf(&b, "bigint in %q: %s\n", value, decoded(t, "bigint", value))
	}
	path := filepath.Join("testdata", fmt.Sprintf("version-%d.golden", Version))
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("raise Version, and run this test with -update:\n%s", diff)
	}
}

func decoded(t *testing.T, kind, value string) string {
	t.Helper()
	d, err := New(job.Source{Format: "json", Columns: []job.Column{{Name: "v", Type: kind}}}, []string{"v"})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if r := d.Append(&kgo.Record{Value: []byte(value)}); r != nil {
		return "rejected: " + r.Reason
	}
	batch := d.Take()
	defer batch.Release()
	text, err := batch.Column(0).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(text)), " ")
}
