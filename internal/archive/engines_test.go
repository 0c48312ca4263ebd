package archive_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
)

// DuckDB reads the files, with nothing lost: NULL and empty keys and values, repeated headers, bytes that are no text, a number beyond
// 2^53, and timestamps of no record, of the year 1677 and of the year 287396. The same file was
// read with pyarrow 26, with the same result.
func TestDuckDBReadsTheFiles(t *testing.T) {
	t.Parallel()
	f, _ := write(t, orders, job.Range{From: 10, To: 30}, awkward()[:4], 2) // the last one is of the year 146 million
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), fmt.Sprintf(`SELECT concat_ws(' ', topic_id, "partition", "offset", epoch_ms("timestamp"), timestamp_type,
			coalesce('x' || hex(key), 'NULL'), coalesce('x' || hex(value), 'NULL'),
			'[' || array_to_string(list_transform(headers, h -> hex(h.key) || '=' || coalesce(hex(h.value), 'NULL')), ', ') || ']')
		FROM read_parquet('%s') ORDER BY "offset"`, filepath.ToSlash(f.Path)))
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var got []string
	for rows.Next() {
		var row string
		if err := rows.Scan(&row); err != nil {
			t.Fatal(err)
		}
		got = append(got, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	const id = "01020300-0000-0000-0000-000000000000 7 "
	want := []string{
		id + "10 -1 0 NULL NULL []",
		id + "11 0 0 x x []",
		id + "13 -9223372036855 0 x6B x00FF [61=31, 62=NULL, 61=, =32]",
		id + "20 9007199254740992 0 NULL x39303037313939323534373430393933 [FF=78]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
