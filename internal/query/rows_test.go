package query

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
)

const upsertFile = `job: accounts
source:
  topics: [accounts]
  format: json
  columns: {name: text, balance: "numeric(12,2)", seen: timestamptz, tags: jsonb}
query: |
  SELECT decode(_key) AS id, name, balance, seen FROM (SELECT _key, name, balance, seen FROM source WHERE balance > 0)
serve: {view: public.accounts, key: [id]}
`

func compileFile(t *testing.T, text string) (*Compiled, error) {
	t.Helper()
	spec, err := job.Parse("job.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return Compile(t.Context(), spec)
}

func TestAnUpsertIsKeyedByServeKeyAndLetsTombstonesThroughItsFilters(t *testing.T) {
	c, err := compileFile(t, upsertFile)
	if err != nil {
		t.Fatal(err)
	}
	names, types := c.Layout.StagedColumns()
	if got := strings.Join(names, " "); c.Layout.Shape != job.Latest || got != "id name balance seen _place _deletes" {
		t.Errorf("%s with columns %s", c.Layout.Shape, got)
	}
	if types[0] != `text COLLATE "C"` || types[2] != "numeric(12,2)" {
		t.Errorf("types %v", types)
	}
	if !strings.Contains(c.Partial, "OR _kappactl_deleted") {
		t.Errorf("a tombstone does not pass: %s", c.Partial)
	}
	if !c.Layout.View[0].Key || c.Layout.View[1].Key {
		t.Errorf("view %+v", c.Layout.View)
	}
}

func TestAppendedRowsAreKeyedByTheirPlaceInTheLog(t *testing.T) {
	file := strings.Replace(upsertFile, ", key: [id]", "", 1)
	c, err := compileFile(t, file)
	if err != nil {
		t.Fatal(err)
	}
	names, _ := c.Layout.StagedColumns()
	if got := strings.Join(names, " "); c.Layout.Shape != job.Rows || got != "_topic _partition _offset _n id name balance seen" {
		t.Errorf("%s with columns %s", c.Layout.Shape, got)
	}
	if strings.Contains(c.Partial, "_kappactl_deleted") || strings.Contains(c.Land(), "row_number") {
		t.Errorf("more work than is needed: %s", c.Land())
	}
	several, err := compileFile(t, strings.Replace(file, "SELECT _key, name", "SELECT unnest([1, 2]) AS i, _key, name", 1))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(several.Land(), "row_number") {
		t.Errorf("the rows of a record are not told apart: %s", several.Land())
	}
}

func TestSettingsOfRowJobsAreJudged(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"key: [id]", "key: [nobody]", `"nobody" is not a column of the query`},
		{"key: [id]", "key: [id], order_by: nobody", `"nobody" is not a column of the query`},
		{"key: [id]", "key: [id], indexes: [[nobody]]", `"nobody" is not a column of the version table`},
		{"key: [id]", "key: [id], keep: 30d", "serve.keep is for rollups and for rows that are appended"},
		{", balance, seen FROM (SELECT _key, name, balance, seen FROM source WHERE balance > 0)\nserve: {view: public.accounts, key: [id]}", " FROM source\nserve: {view: public.accounts, keep: 30d}", "serve.keep needs a time among the columns of the query"},
		{"name, balance, seen FROM (", "name, tags, balance, seen FROM (", "does not bind"},
		{"SELECT decode(_key) AS id, name", "SELECT decode(_key) AS id, decode(_key) AS id, name", "two columns are named"},
		{"key: [id]", "key: [_key]", "not a column of the query"},
	} {
		file := strings.Replace(upsertFile, c.old, c.new, 1)
		if file == upsertFile {
			t.Fatalf("%s is not in the file", c.old)
		}
		spec, err := job.Parse("job.yaml", []byte(file))
		if err == nil {
			_, err = Compile(t.Context(), spec)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) && !strings.Contains(err.Error(), "no column named") && !strings.Contains(err.Error(), "begins with _") {
			t.Errorf("%s: %v", c.new, err)
		}
	}
}

func TestAppendedRowsAreKeptByTheirFirstTimeAndIndexedByIt(t *testing.T) {
	kept := strings.Replace(upsertFile, "key: [id]", "keep: 30d, indexes: [[id]]", 1)
	for file, indexes := range map[string]string{
		kept: "[[id] [seen]]", strings.Replace(kept, "[[id]]", "[[seen, id]]", 1): "[[seen id]]",
		strings.Replace(kept, "keep: 30d, ", "", 1): "[[id]]",
	} {
		c, err := compileFile(t, file)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(c.Layout.Indexes); got != indexes {
			t.Errorf("indexes %s, want %s", got, indexes)
		}
		if k := c.Layout.Keep; (k != nil) != strings.Contains(file, "keep") || k != nil && (k.Column != "seen" || k.Type != "timestamp with time zone") {
			t.Errorf("%+v", k)
		}
	}
}
