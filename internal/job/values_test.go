package job_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kappactl/kappactl/internal/job"
)

func TestDurations(t *testing.T) {
	good := map[string]time.Duration{
		"250ms": 250 * time.Millisecond, "5s": 5 * time.Second, "1h30m": 90 * time.Minute, "90d": 90 * 24 * time.Hour,
		"1d12h": 36 * time.Hour, "1.5d": 36 * time.Hour, "0": 0, "0s": 0, "1d": 24 * time.Hour,
	}
	for text, want := range good {
		if got, err := job.ParseDuration(text); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "5", "-5s", "+5s", "5 s", "1d-2h", "1d+2h", "12h1d", "d", "1dd", "999999999d", "106751d24h", "1e3s", "NaNd", "∞"} {
		if got, err := job.ParseDuration(text); err == nil {
			t.Errorf("%q is taken as %s", text, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, int64(36500*24*time.Hour)).Draw(t, "d"))
		if got, err := job.ParseDuration(job.FormatDuration(d)); err != nil || got != d {
			t.Fatalf("%s is written %s and read %s, %v", d, job.FormatDuration(d), got, err)
		}
	})
	for d, want := range map[time.Duration]string{7 * 24 * time.Hour: "7d", time.Hour: "1h", 90 * time.Second: "1m30s", 10 * time.Minute: "10m", 0: "0s", 36 * time.Hour: "36h"} {
		if got := job.FormatDuration(d); got != want {
			t.Errorf("%s is written %s", want, got)
		}
	}
}

func TestSizesRatesAndPercentages(t *testing.T) {
	for text, want := range map[string]int64{"500kB": 500_000, "1MB": 1_000_000, "2GB": 2_000_000_000, "1KiB": 1024, "64MiB": 64 << 20, "1GiB": 1 << 30, "1.5 MB": 1_500_000, "7B": 7} {
		if got, err := job.ParseSize(text); err != nil || got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "5", "5mb", "5Mb", "-1MB", "99999999TB", "1e9B", "MB"} {
		if got, err := job.ParseSize(text); err == nil {
			t.Errorf("%q is taken as %d", text, got)
		}
	}
	for text, want := range map[string]int64{"50MB/s": 50_000_000, "1GiB/s": 1 << 30, "0": 0} {
		if got, err := job.ParseRate(text); err != nil || got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"50MB", "50MB/m", "1B/s", "/s"} {
		if got, err := job.ParseRate(text); err == nil {
			t.Errorf("%q is taken as %d", text, got)
		}
	}
	for text, want := range map[string]float64{"0.1%": 0.001, "1%": 0.01, "100%": 1, "0%": 0, "0": 0, "12.5 %": 0.125} {
		if got, err := job.ParsePercentage(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"1", "101%", "-1%", "%", "1%%"} {
		if got, err := job.ParsePercentage(text); err == nil {
			t.Errorf("%q is taken as %v", text, got)
		}
	}
}

func TestTypesGetTheirCanonicalNames(t *testing.T) {
	good := map[string]string{
		"bool": "boolean", "int2": "smallint", "int": "integer", "int4": "integer", "INTEGER": "integer", "int8": "bigint", "float4": "real",
		"float8": "double precision", "double  precision": "double precision", "decimal(10, 2)": "numeric(10,2)", "numeric(38)": "numeric(38,0)",
		"numeric ( 5 , 5 )": "numeric(5,5)", "varchar": "character varying", "varchar(20)": "character varying(20)", "character varying(3)": "character varying(3)",
		"text": "text", "bytea": "bytea", "date": "date", "time": "time without time zone", "timestamp": "timestamp without time zone",
		"timestamptz": "timestamp with time zone", "Timestamp With Time Zone": "timestamp with time zone", "uuid": "uuid", "json": "json", "jsonb": "jsonb",
	}
	for text, want := range good {
		got, err := job.ParseType(text)
		if err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
		if again, err := job.ParseType(got); err != nil || again != got {
			t.Errorf("%s: the canonical %s is read as %s, %v", text, got, again, err)
		}
	}
	for _, text := range []string{
		"", "strng", "char(3)", "text[]", "numeric", "decimal", "numeric(0,0)", "numeric(39,2)", "numeric(5,6)", "numeric(5,2,1)", "varchar(0)", "text(5)",
		"int; DROP TABLE x", "bigint)--", "timestamptz(3)", "serial", "interval", "money", "varchar(99999999)", "ｔext",
	} {
		if got, err := job.ParseType(text); err == nil {
			t.Errorf("%q is taken as %s", text, got)
		}
	}
}

func TestViewNames(t *testing.T) {
	good := map[string]job.ViewName{
		"pageviews":           {Schema: "public", Name: "pageviews"},
		"app.pageviews":       {Schema: "app", Name: "pageviews"},
		`public."Weird Name"`: {Schema: "public", Name: "Weird Name"},
		`"A.b"."say ""hi"""`:  {Schema: "A.b", Name: `say "hi"`},
		"select":              {Schema: "public", Name: "select"},
		`"größe"`:             {Schema: "public", Name: "größe"},
	}
	for text, want := range good {
		if got, err := job.ParseViewName(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", ".", "a.", ".a", "a.b.c", "A", "größe", `"a`, `"a"b`, `""`, "pg_toast.x", "information_schema.x", "a b", "a;b", "\"a\nb\"",
		strings.Repeat("x", 64), `"` + strings.Repeat("é", 32) + `"`, "a.." + "b",
	} {
		if got, err := job.ParseViewName(text); err == nil {
			t.Errorf("%q is taken as %+v", text, got)
		}
	}
}

func TestDerivedNamesOfTheLongestJobNameFitPostgreSQL(t *testing.T) {
	longest := job.Ref{Job: job.Name("j" + strings.Repeat("x", 39)), Number: 99999}
	if !job.NamePattern.MatchString(string(longest.Job)) || job.NamePattern.MatchString(string(longest.Job)+"x") {
		t.Fatal("40 characters are not the longest name")
	}
	for _, name := range []string{longest.Table(), longest.Staging()} {
		if len(name) > job.MaxIdentifier {
			t.Errorf("%s has %d bytes", name, len(name))
		}
	}
}

func TestStartPointsByTime(t *testing.T) {
	now := time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC)
	for start, want := range map[string]time.Time{
		"-30d": now.Add(-30 * 24 * time.Hour), "2026-01-31T00:00:00Z": time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC),
	} {
		if got, ok := (job.Replay{Start: start}).StartTime(now); !ok || !got.Equal(want) {
			t.Errorf("%s: %s, %t", start, got, ok)
		}
	}
	for _, start := range []string{job.StartEarliest, job.StartLatest, job.StartOffsets} {
		if got, ok := (job.Replay{Start: start}).StartTime(now); ok {
			t.Errorf("%s is %s", start, got)
		}
	}
}
