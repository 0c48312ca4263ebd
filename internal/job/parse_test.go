package job_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/kappactl/kappactl/internal/job"
)

// sameSpec leaves out what is not part of the job: where it was read from.
var sameSpec = cmp.Options{cmpopts.IgnoreUnexported(job.Spec{}), cmpopts.IgnoreFields(job.Spec{}, "File", "Text", "Expanded", "Variables")}

func TestAFileThatSaysLittleGetsTheDefaults(t *testing.T) {
	got := parse(t, plain)
	want := &job.Spec{
		Job: "pageviews", Mode: job.Kappa,
		Source: job.Source{
			Topics: []string{"a", "b"}, Format: "json", OnError: job.OnError{Max: 0.001},
			Columns: []job.Column{{Name: "url", Type: "text"}, {Name: "n", Type: "integer"}},
		},
		Query:   "SELECT url, count(*) AS views FROM source GROUP BY url",
		Serve:   job.Serve{View: job.ViewName{Schema: "public", Name: "pageviews"}},
		Replay:  job.Replay{Start: "earliest"},
		Live:    job.LiveSettings{Every: 250 * time.Millisecond},
		Ready:   job.ReadySettings{MaxLagTime: 5 * time.Second, StableFor: 10 * time.Second},
		KeepOld: 24 * time.Hour, AutoRetire: true,
	}
	if diff := cmp.Diff(want, got, sameSpec); diff != "" {
		t.Error(diff)
	}
	if got.File != "job.yaml" || string(got.Text) != plain {
		t.Errorf("file %q with %d bytes", got.File, len(got.Text))
	}
}

func TestEveryKeyArrives(t *testing.T) {
	got, err := job.Read("testdata/every-key.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := &job.Spec{
		Job: "pageviews", Mode: job.Lambda, Team: "growth",
		Source: job.Source{
			Topics: []string{"pageviews"}, Format: "json", OnError: job.OnError{Max: 0.001},
			Columns: []job.Column{
				{Name: "user_id", Type: "text"},
				{Name: "url", Type: "text"},
				{Name: "ts", Type: "timestamp with time zone"},
				{Name: "duration_ms", Type: "bigint"},
			},
		},
		Query: "SELECT url, date_trunc('hour', ts) AS hour,\n       count(*) AS views, sum(duration_ms) AS total_ms, avg(duration_ms) AS avg_ms\n" +
			"FROM source\nWHERE user_id IS NOT NULL\nGROUP BY url, hour\n",
		DistinctMax: 1000,
		Serve: job.Serve{
			View:    job.ViewName{Schema: "public", Name: "pageviews_hourly"},
			Columns: []job.ServeColumn{{Name: "ms_per_view", Expr: "total_ms::numeric / nullif(views, 0)"}},
			Where:   "views > 0", Indexes: [][]string{{"url"}}, Grant: map[string][]string{"select": {"analyst"}}, Keep: 90 * 24 * time.Hour,
		},
		Checks: []job.Check{
			{Name: "not_empty", SQL: "SELECT count(*) > 0 FROM candidate", When: "before", Every: time.Minute, Timeout: 30 * time.Second},
			{Name: "close_to_live", Diff: &job.DiffLimit{MaxChanged: 0.01}, When: "before", Every: time.Minute, Timeout: 30 * time.Second},
		},
		Replay:  job.Replay{Start: "earliest", MaxRate: 50_000_000, Source: job.SourceAuto},
		Archive: &job.Archive{Location: "file:///var/lib/kappactl/archive", Roll: job.Roll{Every: time.Hour, Size: 64_000_000}},
		Batch: &job.Batch{
			Schedule: "0 2 * * *", Zone: "UTC", Missed: job.MissedRunOnce, MissedAfter: 10 * time.Minute, Overlap: job.OverlapSkip,
			KeepGenerations: 2, MaxChanged: new(float64), Compare: true,
		},
		Live:    job.LiveSettings{Every: 250 * time.Millisecond},
		Ready:   job.ReadySettings{MaxLagTime: 5 * time.Second, StableFor: 10 * time.Second},
		Promote: job.PromoteManual, KeepOld: 24 * time.Hour, AutoRetire: true,
		Tests: []job.Test{{
			Name: "counts per hour", Given: []job.Given{job.GivenValue(`{"user_id":"u1","url":"/a","ts":"2026-01-01T10:05:00Z","duration_ms":5}`)},
			Expect: []map[string]any{{"url": "/a", "hour": "2026-01-01T10:00:00Z", "views": json.Number("1"), "total_ms": json.Number("5")}},
		}},
	}
	if diff := cmp.Diff(want, got, sameSpec); diff != "" {
		t.Error(diff)
	}
}

func TestOtherSpellings(t *testing.T) {
	got := parse(t, replace(t, plain, "serve:", `checks: [{name: a, sql: SELECT 1, when: both, every: 1d, timeout: 90s}]
ready: {max_lag: 100, max_lag_time: 1m, stable_for: 0}
replay: {start: -30d, workers: 4, max_rate: 1.5MiB/s}
keep_old: 1d12h
auto_retire: false
promote: auto
serve:`))
	if c := got.Checks[0]; c.When != "both" || c.Every != 24*time.Hour || c.Timeout != 90*time.Second {
		t.Errorf("check %+v", c)
	}
	if got.Ready != (job.ReadySettings{MaxLagTime: time.Minute, MaxLag: 100}) || got.KeepOld != 36*time.Hour || got.AutoRetire || got.Promote != job.PromoteAuto {
		t.Errorf("ready %+v, keep_old %s, auto_retire %t, promote %s", got.Ready, got.KeepOld, got.AutoRetire, got.Promote)
	}
	if got.Replay.Start != "-30d" || got.Replay.Workers != 4 || got.Replay.MaxRate != 1536<<10 {
		t.Errorf("replay %+v", got.Replay)
	}
	if c := parse(t, replace(t, plain, "serve:", "replay: {start: 2026-01-31}\nserve:")).Replay.Start; c != "2026-01-31T00:00:00Z" {
		t.Errorf("a date becomes %s", c)
	}
	if e := parse(t, replace(t, plain, "  columns:", "  on_error: fail\n  columns:")).Source.OnError; !e.Fail {
		t.Errorf("on_error: fail becomes %+v", e)
	}
}

func TestSpecSurvivesJSON(t *testing.T) {
	paths, err := filepath.Glob("testdata/hash/*.yaml")
	if err != nil || len(paths) < 4 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		first, err := job.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		first.Tests = append(first.Tests, job.Test{Name: "big", Expect: []map[string]any{{"n": json.Number("9007199254740993"), "x": nil}}})
		text, err := json.Marshal(first)
		if err != nil {
			t.Fatal(err)
		}
		var second job.Spec
		if err := json.Unmarshal(text, &second); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, &second, sameSpec); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
		if first.Hash(1) != second.Hash(1) {
			t.Errorf("%s: the hash changes on the way through JSON", path)
		}
		if line, column := second.Where("query"); line != 0 || column != 0 {
			t.Errorf("%s: a place out of nowhere: %d:%d", path, line, column)
		}
		if p := second.ProblemAt("query", 3, job.DuckDBSQL, "cause", "cure"); p.Line != 0 || p.Excerpt != "" || !strings.Contains(p.String(), "query: DuckDB SQL: cause") {
			t.Errorf("%s: %+v", path, p)
		}
	}
}

func TestMissingFileIsAProblem(t *testing.T) {
	_, err := job.Read(filepath.Join(t.TempDir(), "none.yaml"))
	if err == nil || !strings.Contains(err.Error(), "none.yaml: cannot be read: no such file or directory") {
		t.Errorf("got %v", err)
	}
}

func TestWhatThisReleaseCannotDoIsRefusedAtItsPlace(t *testing.T) {
	s := parse(t, `job: later
mode: lambda
archive: {location: file:///a}
source: {topics: [a], format: avro, columns: {x: int}}
query: SELECT x FROM source
serve:
  view: later
  key: [x]
  keep: 90d
`)
	err := s.Supported()
	if err == nil {
		t.Fatal("everything is taken")
	}
	for _, want := range []string{
		"job.yaml:4:31: source.format: ",
		"not in this release",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
	if err := parse(t, plain).Supported(); err != nil {
		t.Errorf("a plain job is refused: %v", err)
	}
}

func TestKeysListsWhatTheParserKnows(t *testing.T) {
	var paths []string
	for _, k := range job.Keys() {
		paths = append(paths, k.Path)
	}
	for _, want := range []string{"job", "source.columns.NAME.unit", "source.on_error.dead_letter.max", "checks[].diff.max_changed", "checks[].diff.tolerance", "replay.start.offsets", "tests[].expect"} {
		if !slices.Contains(paths, want) {
			t.Errorf("no %s in %v", want, paths)
		}
	}
}

func TestParseNeverPanics(t *testing.T) {
	text, err := os.ReadFile("testdata/every-key.yaml")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	noise := rapid.SampledFrom([]string{
		"", "\n", "  ", "- ", "? ", ": ", "{", "}", "[", "]", "&a ", "*a", "<<: ", "!!int ", "!x ", "|\n", ">\n", "'", "\"", "\t", "#", "---\n", "...\n",
		"null", "~", "\x00", "\ufeff", "\u2028", "é", "%YAML 1.1\n", "0x", ".inf", "2026-01-01", "&a [*a]", "\r",
	})
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.IntRange(0, len(lines)).Draw(t, "from")
		to := rapid.IntRange(from, len(lines)).Draw(t, "to")
		text := strings.Join(lines[from:to], "")
		for range rapid.IntRange(0, 4).Draw(t, "edits") {
			at := rapid.IntRange(0, len(text)).Draw(t, "at")
			cut := rapid.IntRange(at, min(len(text), at+8)).Draw(t, "cut")
			text = text[:at] + noise.Draw(t, "noise") + text[cut:]
		}
		tryParse(t, text)
	})
}

// tryParse parses text; what comes out has to be usable either way.
func tryParse(t interface{ Fatalf(string, ...any) }, text string) {
	s, err := job.Parse("job.yaml", []byte(text))
	if err != nil {
		if err.Error() == "" {
			t.Fatalf("an error without text for %q", text)
		}
		return
	}
	_ = s.Hash(1)
	_ = s.Supported()
	for at := -1; at <= len(s.Query)+1; at++ {
		_ = s.ProblemAt("query", at, job.DuckDBSQL, "cause", "cure").String()
	}
	if s.Job == "" || len(s.Source.Columns) == 0 || s.Serve.View.Name == "" {
		t.Fatalf("a required key is missing in %q", text)
	}
}

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/wrong/*.yaml", "testdata/hash/*.yaml"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(text))
		}
	}
	f.Fuzz(func(t *testing.T, text string) { tryParse(t, text) })
}
