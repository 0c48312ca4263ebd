package query

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// trap is a file with a secret and a port that counts who knocks.
type trap struct {
	dir, file, url string
	knocks         atomic.Int64
}

// trapVariable is in the environment of all tests, with the secret.
const (
	trapVariable = "KAPPACTL_TRAP"
	trapSecret   = "canary-7f3a"
)

func setTrap(t *testing.T) *trap {
	t.Helper()
	tr := &trap{dir: t.TempDir()}
	tr.file = filepath.Join(tr.dir, "secret.csv")
	if err := os.WriteFile(tr.file, []byte("a\n"+trapSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	tr.url = "http://" + l.Addr().String() + "/x.parquet"
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			tr.knocks.Add(1)
			_ = conn.Close()
		}
	}()
	return tr
}

// refused compiles a query that has to be refused without a trace of the secret.
func (tr *trap) refused(t *testing.T, query string) {
	t.Helper()
	spec := parseJob(t, "job.yaml", jobText("SELECT 1"))
	spec.Query = query
	c, err := Compile(t.Context(), spec)
	switch {
	case err == nil:
		t.Errorf("taken: %s\n%+v", query, c)
	case strings.Contains(err.Error(), trapSecret):
		t.Errorf("the refusal of %s shows the secret: %v", query, err)
	}
}

// TestJobSQLReachesNothingOutside puts every way out that the engine has, and some that it had, in every place of a query.
func TestJobSQLReachesNothingOutside(t *testing.T) {
	t.Parallel()
	tr := setTrap(t)
	file, url := literal(tr.file), literal(tr.url)
	relations := []string{
		file, literal(tr.dir + "/*.csv"), url, `"` + tr.file + `"`, "'s3://bucket/x.parquet'", "'/etc/passwd'", "'/dev/stdin'",
		"read_csv(" + file + ")", "read_csv(" + url + ")", "read_csv_auto([" + file + "])", "read_json(" + file + ")", "read_text(" + file + ")",
		"read_blob(" + file + ")", "read_parquet(" + url + ")", "glob(" + literal(tr.dir+"/*") + ")", "sniff_csv(" + file + ")",
		"parquet_metadata(" + file + ")", "sqlite_scan(" + file + ", 't')", "postgres_scan('host=127.0.0.1', 'public', 't')",
		"duckdb_settings()", "duckdb_secrets()", "duckdb_extensions()", "duckdb_functions()", "duckdb_temporary_files()", "pragma_version()",
		"pragma_table_info('source')", "information_schema.tables", "pg_catalog.pg_class", "sqlite_master", "duckdb_logs()",
		"query('SELECT 1')", "query_table('source')", "json_execute_serialized_sql(json_serialize_sql('SELECT 1'))", "arrow_scan(0, 0, 0)",
		"system.main.duckdb_settings()", "main.source", "memory.main.source", "temp.source",
	}
	inPlaceOf := func(r string) []string {
		return []string{
			"SELECT count(*) AS n FROM " + r,
			"WITH x AS (SELECT * FROM " + r + ") SELECT count(*) AS n FROM x",
			"WITH source AS (SELECT * FROM " + r + ") SELECT count(*) AS n FROM source",
			"SELECT url, count(*) AS n FROM source, " + r + " AS o GROUP BY url",
			"SELECT url, count(*) AS n FROM source WHERE EXISTS (FROM " + r + ") GROUP BY url",
			"SELECT url, max((SELECT count(*) FROM " + r + ")) AS n FROM source GROUP BY url",
			"SELECT o.url AS url FROM " + r + " AS o",
			"SELECT url, (FROM " + r + ") AS n FROM source WHERE url IS NOT NULL",
		}
	}
	for i, r := range relations {
		queries := inPlaceOf(r)
		if i > 8 { // each of the rest in two of the places
			queries = []string{queries[0], queries[1+i%7]}
		}
		for _, query := range queries {
			tr.refused(t, query)
		}
	}
	asValue := func(value string) []string {
		return []string{
			"SELECT url, max(CAST(" + value + " AS VARCHAR)) AS n FROM source GROUP BY url",
			"SELECT CAST(" + value + " AS VARCHAR) AS k, count(*) AS n FROM source GROUP BY k",
			"SELECT url, count(*) AS n FROM source WHERE CAST(" + value + " AS VARCHAR) <> url GROUP BY url",
			"SELECT url, count(*) FILTER (WHERE CAST(" + value + " AS VARCHAR) = 'x') AS n FROM source GROUP BY url",
			"SELECT url, CAST(" + value + " AS VARCHAR) AS n FROM source",
			"SELECT url FROM source WHERE CAST(" + value + " AS VARCHAR) <> url",
		}
	}
	for _, value := range []string{
		"getenv('" + trapVariable + "')", "current_setting('temp_directory')", "getvariable('x')", "current_database()", "current_schema()",
		"current_user", "version()", "txid_current()", "nextval('s')", "pg_backend_pid()", "which_secret('s3://x', 's3')", "write_log('x')",
		"(FROM read_text(" + file + "))", "(SELECT content FROM read_text(" + file + "))", "uuid()", "random()", "now()", "current_date",
	} {
		for _, query := range asValue(value) {
			tr.refused(t, query)
		}
	}
	// The same queries with a value that is there are taken: it is not their form that is refused.
	for _, query := range append(asValue("user_id"), inPlaceOf("source")[:2]...) {
		spec := parseJob(t, "job.yaml", jobText("SELECT 1"))
		spec.Query = query
		if _, err := Compile(t.Context(), spec); err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
	for _, statement := range []string{
		"SET memory_limit = '10GB'", "RESET ALL", "PRAGMA threads = 4", "INSTALL httpfs", "LOAD " + file, "ATTACH " + file + " AS x", "USE memory",
		"COPY source TO " + literal(tr.dir+"/out.csv"), "EXPORT DATABASE " + literal(tr.dir), "CREATE TABLE x AS SELECT 1", "CREATE SECRET s (TYPE s3)",
		"CALL pragma_version()", "EXPLAIN SELECT 1", "DESCRIBE source", "SUMMARIZE source", "SHOW TABLES", "CHECKPOINT", "BEGIN", "DROP VIEW source",
		"SELECT url, count(*) AS n FROM source GROUP BY url; SET memory_limit = '10GB'", "EXECUTE p", "PREPARE p AS SELECT 1",
	} {
		tr.refused(t, statement)
	}
	if n := tr.knocks.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
	if left, _ := filepath.Glob(filepath.Join(tr.dir, "*")); len(left) != 1 {
		t.Errorf("files were written: %v", left)
	}
}

// TestNoTableFunctionOfTheEngineIsTaken asks the engine which it has, so that a new release brings none that is missed.
func TestNoTableFunctionOfTheEngineIsTaken(t *testing.T) {
	t.Parallel()
	tr := setTrap(t)
	s := open(t, Config{})
	functions := mustRows(t, s, `SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type IN ('table', 'table_macro', 'pragma') ORDER BY 1`, nil)
	if len(functions) < 50 {
		t.Fatalf("the engine lists only %d", len(functions))
	}
	for _, f := range functions {
		switch f[0] {
		case "unnest", "range", "generate_series": // of the query's own values
			continue
		}
		tr.refused(t, fmt.Sprintf("SELECT count(*) AS n FROM %s('x')", ident(f[0])))
	}
}
