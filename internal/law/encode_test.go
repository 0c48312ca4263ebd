package law_test

import (
	"testing"

	"github.com/kappactl/kappactl/internal/format"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/law"
)

// Generated records of every format and type are records that the format takes.
func TestGeneratedRecordsAreNoDeadLetters(t *testing.T) {
	every := []job.Column{
		{Name: "a", Type: "boolean"},
		{Name: "b", Type: "smallint"},
		{Name: "c", Type: "double precision"},
		{Name: "d", Type: "numeric(10,2)"},
		{Name: "e", Type: "bytea"},
		{Name: "f", Type: "date"},
		{Name: "g", Type: "timestamp with time zone", Unit: "ms"},
		{Name: "h", Type: "timestamp without time zone"},
		{Name: "i", Type: "uuid"},
		{Name: "j", Type: "jsonb"},
		{Name: "k", Type: "text"},
		{Name: "l", Type: "time without time zone"},
	}
	for what, source := range map[string]job.Source{
		"json":      {Format: "json", Columns: every},
		"csv":       {Format: "csv", Columns: every},
		"raw text":  {Format: "raw", Columns: []job.Column{{Name: "v", Type: "text"}}},
		"raw bytea": {Format: "raw", Columns: []job.Column{{Name: "v", Type: "bytea"}}},
		"raw json":  {Format: "raw", Columns: []job.Column{{Name: "v", Type: "json"}}},
	} {
		source.Topics = []string{"t"}
		records, err := law.Generate(&job.Spec{Source: source}, 200, 1)
		if err != nil {
			t.Fatal(err)
		}
		d, err := format.New(source, []string{source.Columns[0].Name})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			if refused := d.Append(r); refused != nil {
				t.Fatalf("%s: %s: %v", what, r.Value, refused)
			}
		}
		d.Close()
	}
}
