package query

import (
	"strings"
	"testing"
	"time"
)

// TestAValueThatAsksForMuchIsAnErrorOverItsRecord: memory_limit does not bound it, and the system ended the process.
func TestAValueThatAsksForMuchIsAnErrorOverItsRecord(t *testing.T) {
	t.Parallel()
	s := open(t, Config{})
	const from = " FROM (SELECT 3000000000 AS n, TIMESTAMP '2020-01-01' AS a, TIMESTAMP '9999-01-01' AS b, TIMESTAMPTZ '2020-01-01' AS za, " +
		"TIMESTAMPTZ '9999-01-01' AS zb, 'text' AS s, [1] AS l, DATE '0001-01-01' AS da, DATE '9999-01-01' AS db)"
	for _, e := range []string{
		"range(n)", "range(5, n)", "range(n, 5, -1)", "range(0, n, 2)", "generate_series(n)", "generate_series(-n, n)", "generate_series(0, n, 7)",
		"range(a, b, INTERVAL 1 HOUR)", "generate_series(a, b, INTERVAL 1 SECOND)", "range(za, zb, INTERVAL 1 HOUR)", "generate_series(zb, za, INTERVAL (-1) MINUTE)",
		"generate_series(da, db, INTERVAL 1 DAY)", "repeat(s, n)", "repeat(l, n)", "lpad(s, CAST(n / 2 AS INTEGER), 'x')", "rpad(s, CAST(n / 2 AS INTEGER), 'x')",
		"list_resize(l, n)", "list_resize(l, n, 0)", "array_resize(l, n)", "range(-9223372036854775807, 9223372036854775807)",
	} {
		began := time.Now()
		_, err := s.texts(t.Context(), "SELECT CAST(length("+e+") AS VARCHAR)"+from)
		_, detail, _ := Guarded(err)
		if !strings.Contains(detail, "more than") {
			t.Errorf("%s: %v", e, err)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("%s took %s", e, took)
		}
	}
}

// TestLimitedFunctionsAnswerAsTheEngineDoes within the limits.
func TestLimitedFunctionsAnswerAsTheEngineDoes(t *testing.T) {
	t.Parallel()
	limited, plain := open(t, Config{}), open(t, Config{plain: true})
	for _, e := range []string{
		"range(5)", "range(v)", "range(2, 5)", "range(5, 0, -2)", "range(0, 5, 0)", "range(NULL)", "generate_series(3)", "generate_series(1::TINYINT, 9::UTINYINT, 2)",
		"generate_series(DATE '2020-01-01', DATE '2020-01-03', INTERVAL 1 DAY)", "range(TIMESTAMP '2020-01-01', TIMESTAMP '2020-03-03', INTERVAL 1 MONTH)",
		"range(TIMESTAMPTZ '2020-01-01', TIMESTAMPTZ '2020-01-03', INTERVAL 6 HOUR)", "generate_series(TIMESTAMP '2020-01-03', TIMESTAMP '2020-01-01', INTERVAL (-1) DAY)",
		"repeat('ab', 3)", "repeat('ab', v)", "repeat('é', 2)", "repeat('a', -1)", "repeat(NULL, 3)", "repeat([1, 2], 2)", "repeat('\\x00'::BLOB, 2)",
		"lpad('a', 5, 'xy')", "rpad('abc', 2, 'x')", "lpad('a', v, '-')", "list_resize([1, 2], 4)", "list_resize([1, 2], 1, 9)", "array_resize([1], v)",
		"list_transform(range(3), x -> repeat('a', x))",
	} {
		text := "SELECT CAST(" + e + " AS VARCHAR), CAST(typeof(" + e + ") AS VARCHAR) FROM (SELECT 4::INTEGER AS v)"
		want, wantErr := plain.texts(t.Context(), text)
		got, err := limited.texts(t.Context(), text)
		if (err == nil) != (wantErr == nil) || len(got) != len(want) || err == nil && (got[0][0] != want[0][0] || got[0][1] != want[0][1]) {
			t.Errorf("%s = %v (%v), want %v (%v)", e, got, err, want, wantErr)
		}
	}
}
