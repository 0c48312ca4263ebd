package query

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/go-cmp/cmp"
)

func TestRunReadsEveryBatchOfTheInput(t *testing.T) {
	s := open(t, Config{})
	in := numbers(t, memory.DefaultAllocator, 50, 1000, 7)
	got := mustRows(t, s, "SELECT CAST(count(*) AS VARCHAR), CAST(sum(a) AS VARCHAR) FROM source", in)
	if diff := cmp.Diff([][]string{{"50000", "1249975000"}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestRunReadsTheColumnThatTheQueryNamesWhateverItSkips(t *testing.T) {
	s := open(t, Config{})
	for sql, want := range map[string]string{
		"SELECT max(b) FROM source":                  "group " + strings.Repeat("x", 40) + "6ns",
		"SELECT CAST(max(a) AS VARCHAR) FROM source": "999",
	} {
		if got := mustRows(t, s, sql, numbers(t, memory.DefaultAllocator, 1, 1000, 7)); got[0][0] != want {
			t.Errorf("%s = %s, want %s", sql, got[0][0], want)
		}
	}
}

func TestRunPullsBatchesOneByOne(t *testing.T) {
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	s := open(t, Config{})
	in := numbers(t, alloc, 200, 2048, 10)
	most, next := 0, in.next
	in.next = func() (arrow.RecordBatch, error) {
		most = max(most, alloc.CurrentAlloc())
		return next()
	}
	mustRows(t, s, "SELECT b, count(*) FROM source GROUP BY b", in)
	in.Release()
	if most > 4<<20 {
		t.Errorf("%d bytes of input were held at once", most)
	}
	alloc.AssertSize(t, 0)
}

func TestRunReturnsTheErrorOfTheInputAsItIs(t *testing.T) {
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	s := open(t, Config{})
	broken := errors.New("broker went away")
	in := numbers(t, alloc, 5, 1000, 10)
	next := in.next
	in.next = func() (arrow.RecordBatch, error) {
		if in.reads == 3 {
			return nil, broken
		}
		return next()
	}
	_, err := rowsOf(t.Context(), s, "SELECT b, count(*) FROM source GROUP BY b", in)
	if err != broken { //nolint:errorlint // the very same error
		t.Fatalf("got %v, want %v", err, broken)
	}
	in.Release()
	alloc.AssertSize(t, 0)
	if got := mustRows(t, s, "SELECT CAST(count(*) AS VARCHAR) FROM source", numbers(t, alloc, 2, 10, 1)); got[0][0] != "20" {
		t.Errorf("the session counts %v after an error of its input", got)
	}
}

func TestRunTurnsAPanicOfTheInputIntoAnError(t *testing.T) {
	s := open(t, Config{})
	in := numbers(t, memory.DefaultAllocator, 5, 1000, 10)
	in.next = func() (arrow.RecordBatch, error) { panic("no broker") }
	if _, err := rowsOf(t.Context(), s, "SELECT count(*) FROM source", in); err == nil || !strings.Contains(err.Error(), "no broker") {
		t.Fatalf("got %v", err)
	}
}

func TestRunReturnsTheErrorOfYieldAsItIs(t *testing.T) {
	s := open(t, Config{})
	full := errors.New("disk full")
	err := s.Run(t.Context(), "SELECT a FROM source", numbers(t, memory.DefaultAllocator, 5, 10000, 10), func(arrow.RecordBatch) error { return full })
	if err != full { //nolint:errorlint // the very same error
		t.Fatalf("got %v, want %v", err, full)
	}
	mustRows(t, s, "SELECT 1", nil)
}

func TestAnErrorOverTheDataIsAnExecError(t *testing.T) {
	s := open(t, Config{})
	_, err := rowsOf(t.Context(), s, "SELECT sum(CAST(b AS BIGINT)) FROM source", numbers(t, memory.DefaultAllocator, 5, 1000, 10))
	var ee *ExecError
	if !errors.As(err, &ee) || !strings.Contains(err.Error(), "group") {
		t.Fatalf("got %T %v", err, err)
	}
}

func TestOverflowOfATotalIsAnErrorAndNotAWrap(t *testing.T) {
	s := open(t, Config{})
	sql := "SELECT sum(CAST(170141183460469231731687303715884105727 AS HUGEINT) - a + a * 2) FROM source"
	_, err := rowsOf(t.Context(), s, sql, numbers(t, memory.DefaultAllocator, 1, 10, 10))
	var ee *ExecError
	if !errors.As(err, &ee) {
		t.Fatalf("got %T %v", err, err)
	}
}

func TestCancellingTheContextEndsTheStatement(t *testing.T) {
	s := open(t, Config{})
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("lease lost")
	in := numbers(t, memory.DefaultAllocator, 5, 1000, 10)
	next := in.next
	in.next = func() (arrow.RecordBatch, error) {
		if in.reads == 2 {
			cancel(stop)
		}
		return next()
	}
	if _, err := rowsOf(ctx, s, "SELECT count(*) FROM source", in); !errors.Is(err, stop) {
		t.Fatalf("got %v, want %v", err, stop)
	}
	timed, done := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer done()
	start := time.Now()
	_, err := rowsOf(timed, s, "SELECT count(*) FROM range(100000000) a, range(100000) b", nil)
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > time.Minute {
		t.Fatalf("got %v after %s", err, time.Since(start))
	}
	mustRows(t, s, "SELECT 1", nil)
}

func TestABigGroupBySpillsUnderASmallMemoryLimit(t *testing.T) {
	temp := t.TempDir()
	s := open(t, Config{Memory: 40e6, Temp: temp})
	sql := "SELECT CAST(count(*) AS VARCHAR), CAST(sum(n) AS VARCHAR) FROM (SELECT b, count(*) AS n FROM source GROUP BY b)"
	got := mustRows(t, s, sql, numbers(t, memory.DefaultAllocator, 150, 4000, 1<<30))
	if diff := cmp.Diff([][]string{{"600000", "600000"}}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Stat(".tmp"); err == nil {
		t.Error("the engine spilled into the current folder")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(temp, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWithoutATempFolderTheMemoryLimitIsAResourceError(t *testing.T) {
	s := open(t, Config{Memory: 40e6})
	_, err := rowsOf(t.Context(), s, "SELECT b, count(*) AS n FROM source GROUP BY b", numbers(t, memory.DefaultAllocator, 150, 4000, 1<<30))
	var re *ResourceError
	if !errors.As(err, &re) {
		t.Fatalf("got %T %v", err, err)
	}
	if got := mustRows(t, s, "SELECT CAST(count(*) AS VARCHAR) FROM source", numbers(t, memory.DefaultAllocator, 2, 10, 1)); got[0][0] != "20" {
		t.Errorf("the session counts %v afterwards", got)
	}
}

func TestTwoSessionsSpillIntoTheSameFolder(t *testing.T) {
	temp := t.TempDir()
	a, b := open(t, Config{Memory: 40e6, Temp: temp}), open(t, Config{Memory: 40e6, Temp: temp})
	sql := "SELECT CAST(count(*) AS VARCHAR) FROM (SELECT b, count(*) AS n FROM source GROUP BY b)"
	results := make(chan [][]string, 2)
	for _, s := range []*Session{a, b} {
		go func() {
			rows, err := rowsOf(t.Context(), s, sql, numbers(t, memory.DefaultAllocator, 100, 4000, 1<<30))
			if err != nil {
				t.Error(err)
			}
			results <- rows
		}()
	}
	for range 2 {
		if diff := cmp.Diff([][]string{{"400000"}}, <-results); diff != "" {
			t.Error(diff)
		}
	}
}

// TestTheEngineReachesNoFileAndNoNetwork gives statements to a session itself, as they would come past the compiler.
func TestTheEngineReachesNoFileAndNoNetwork(t *testing.T) {
	tr := setTrap(t)
	s := open(t, Config{Temp: tr.dir})
	file, url := literal(tr.file), literal(tr.url)
	for _, sql := range []string{
		"SELECT * FROM read_csv(" + file + ")", "SELECT * FROM " + file, "SELECT * FROM read_text(" + file + ")", "SELECT content FROM read_blob(" + file + ")",
		"SELECT * FROM sniff_csv(" + file + ")", "SELECT * FROM glob(" + literal(tr.dir+"/*") + ")", "SELECT getenv('KAPPACTL_TRAP')",
		"COPY (SELECT 1) TO " + literal(tr.dir+"/out.csv"), "COPY (SELECT 1) TO " + literal(tr.dir+"/out") + " (FORMAT parquet)", "EXPORT DATABASE " + literal(tr.dir+"/all"),
		"CREATE TABLE x (a TEXT); COPY x FROM " + file, "IMPORT DATABASE " + literal(tr.dir), "ATTACH " + literal(tr.dir+"/db"), "ATTACH " + file + " AS x (READ_ONLY)",
		"INSTALL httpfs", "INSTALL h3 FROM community", "LOAD httpfs", "LOAD " + file, "FORCE INSTALL httpfs FROM " + url, "SELECT * FROM read_parquet(" + url + ")",
		"SELECT * FROM read_csv(" + url + ")", "ATTACH " + url + " AS y", "CREATE PERSISTENT SECRET s (TYPE s3)", "SELECT * FROM query('FROM read_text(" + tr.file + ")')",
	} {
		rows, err := rowsOf(t.Context(), s, sql, nil)
		if err == nil {
			t.Errorf("%s was allowed: %v", sql, rows)
		} else if strings.Contains(err.Error(), trapSecret) {
			t.Errorf("%s shows the secret: %v", sql, err)
		}
	}
	if n := tr.knocks.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(tr.dir, "*")); len(left) != 1 {
		t.Errorf("files were written: %v", left)
	}
}

func TestTheSettingsAreLocked(t *testing.T) {
	s := open(t, Config{Memory: 64e6, Threads: 1})
	for _, sql := range []string{
		"SET memory_limit = '10GB'", "SET threads = 8", "SET TimeZone = 'America/New_York'", "SET enable_external_access = true",
		"SET temp_directory = '/'", "SET GLOBAL extension_directory = '/tmp'", "SET SESSION home_directory = '/'", "SET allowed_paths = ['/etc/passwd']",
		"SET allowed_directories = ['/']", "SET secret_directory = '/'", "SET allow_unsigned_extensions = true", "SET custom_extension_repository = 'x'",
		"SET enable_logging = true", "SET log_query_path = '/x'", "PRAGMA enable_logging", "RESET memory_limit", "PRAGMA threads = 4", "SET lock_configuration = false",
	} {
		if _, err := rowsOf(t.Context(), s, sql, nil); err == nil {
			t.Errorf("%s was allowed", sql)
		}
	}
	got := mustRows(t, s, "SELECT current_setting('TimeZone'), CAST(current_setting('threads') AS VARCHAR), current_setting('memory_limit')", nil)
	if diff := cmp.Diff([][]string{{"UTC", "1", "61.0 MiB"}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestTimesWithZoneAreThoseOfUTCWhateverTheMachineSays(t *testing.T) {
	t.Setenv("TZ", "America/New_York")
	s := open(t, Config{})
	sql := "SELECT CAST(date_trunc('day', TIMESTAMPTZ '2024-03-10 02:30:00+05:30') AS VARCHAR), CAST(TIMESTAMPTZ '2024-07-01 12:00:00' AS VARCHAR)"
	got := mustRows(t, s, sql, nil)
	if diff := cmp.Diff([][]string{{"2024-03-09 00:00:00+00", "2024-07-01 12:00:00+00"}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestMemoryOfTheInputIsReleasedAfterEveryRun(t *testing.T) {
	alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
	s := open(t, Config{})
	for i := range 20 {
		in := numbers(t, alloc, 3, 500, 3)
		if got := mustRows(t, s, "SELECT CAST(count(*) AS VARCHAR) FROM source", in); got[0][0] != strconv.Itoa(1500) {
			t.Fatalf("run %d: %v", i, got)
		}
		in.Release()
		alloc.AssertSize(t, 0)
	}
	if got := mustRows(t, s, "SELECT CAST(count(*) AS VARCHAR) FROM duckdb_views() WHERE NOT internal", nil); got[0][0] != "0" {
		t.Errorf("%s views left", got[0][0])
	}
}

func TestASessionIsUsableAfterItsEngineBroke(t *testing.T) {
	s := open(t, Config{Memory: 64e6})
	if err := s.stop(); err != nil { // what Run does after a fatal error
		t.Fatal(err)
	}
	got := mustRows(t, s, "SELECT current_setting('TimeZone'), current_setting('memory_limit')", nil)
	if diff := cmp.Diff([][]string{{"UTC", "61.0 MiB"}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestASessionCanBeBoundedAnew(t *testing.T) {
	s := open(t, Config{Memory: 64e6, Temp: t.TempDir()})
	for _, c := range []struct {
		bounds Config
		want   []string
	}{
		{Config{Memory: 128e6}, []string{"122.0 MiB", "9.3 GiB"}},
		{Config{Memory: 128e6, TempLimit: 1 << 30}, []string{"122.0 MiB", "1.0 GiB"}},
		{Config{Memory: 64e6, TempLimit: 1 << 30}, []string{"61.0 MiB", "1.0 GiB"}},
		{Config{}, []string{"244.1 MiB", "9.3 GiB"}},
	} {
		for range 2 {
			if err := s.Bound(c.bounds); err != nil {
				t.Fatal(err)
			}
			got := mustRows(t, s, "SELECT current_setting('memory_limit'), current_setting('max_temp_directory_size')", nil)
			if diff := cmp.Diff([][]string{c.want}, got); diff != "" {
				t.Errorf("bounded to %+v: %s", c.bounds, diff)
			}
		}
	}
	engine := s.connector
	if s.Bound(Config{}) != nil || s.connector != engine {
		t.Error("an engine with these bounds was started anew")
	}
	if s.Bound(Config{Memory: 64e6}) != nil || s.Bound(Config{}) != nil || s.Close() != nil || s.Bound(Config{Memory: 64e6}) != nil {
		t.Error("a session that has no engine can be bounded too")
	}
}

func TestAnInputOfPlainColumnsIsRefused(t *testing.T) {
	s := open(t, Config{})
	in := &stream{schema: arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64}}, nil)}
	if _, err := rowsOf(t.Context(), s, "SELECT count(*) FROM source", in); err == nil || !strings.Contains(err.Error(), "STRUCT") {
		t.Fatalf("got %v", err)
	}
}

func TestEngineNamesTheVersion(t *testing.T) {
	if got := Engine(); !strings.HasPrefix(got, "duckdb 1.") {
		t.Errorf("got %q", got)
	}
}
