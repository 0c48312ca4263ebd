package mergecheck_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/kappactl/kappactl/internal/format"
	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/mergecheck"
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
	inside := []job.Column{
		{Name: "id", Type: "text", Path: "$._id"},
		{Name: "after", Type: "jsonb", Path: "$.payload.after"},
		{Name: "amount", Type: "numeric(20,2)", Path: "$.payload.after.amount"},
		{Name: "second", Type: "bigint", Path: "$.payload.items[1].price"},
		{Name: "again", Type: "text", Path: "$._id"},
	}
	for what, source := range map[string]job.Source{
		"json":      {Format: "json", Columns: every},
		"paths":     {Format: "json", Columns: inside},
		"csv":       {Format: "csv", Columns: every},
		"raw text":  {Format: "raw", Columns: []job.Column{{Name: "v", Type: "text"}}},
		"raw bytea": {Format: "raw", Columns: []job.Column{{Name: "v", Type: "bytea"}}},
		"raw json":  {Format: "raw", Columns: []job.Column{{Name: "v", Type: "json"}}},
	} {
		source.Topics = []string{"t"}
		records, err := mergecheck.Generate(&job.Spec{Source: source}, 200, 1)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, c := range source.Columns {
			names = append(names, c.Name)
		}
		d, err := format.New(source, names)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			if refused := d.Append(r); refused != nil {
				t.Fatalf("%s: %s: %v", what, r.Value, refused)
			}
		}
		batch := d.Take()
		row, ok := batch.Column(0).(*array.Struct)
		for i, name := range names {
			if !ok || row.Field(i).NullN() == row.Len() {
				t.Errorf("%s: column %s is always NULL", what, name)
			}
		}
		batch.Release()
		d.Close()
	}
}
