package lookup

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
)

// read makes a view of a query and reads it.
func read(t *testing.T, view string, q Question) (Rows, error) {
	t.Helper()
	pool, _ := pgtest.New(t)
	if _, err := pool.Exec(t.Context(), "CREATE VIEW public.v AS "+view); err != nil {
		t.Fatal(err)
	}
	q.View = job.ViewName{Schema: "public", Name: "v"}
	var rows Rows
	err := pool.ReadOnly(t.Context(), func(tx *pg.Tx) (err error) {
		rows, err = Read(t.Context(), tx, q)
		return err
	})
	return rows, err
}

// first returns the first column of all rows.
func first(rows Rows) string {
	var out []string
	for _, r := range rows.Texts {
		out = append(out, *r[0])
	}
	return strings.Join(out, " ")
}

// TestRowsWithoutAKeyAreReadUpToTheLimit reads a view that has no end, one row beyond the limit, and orders those rows
// as text.
func TestRowsWithoutAKeyAreReadUpToTheLimit(t *testing.T) {
	t.Parallel()
	rows, err := read(t, `WITH RECURSIVE n (i) AS (SELECT 10 UNION ALL SELECT i - 1 FROM n) SELECT i, 'x' AS "odd "" name"
		FROM n`,
		Question{Limit: 3})
	if err != nil {
		t.Fatal(err)
	}
	if first(rows) != "10 7 8" || !rows.More || string(rows.Objects[0]) != `{"i":10,"odd \" name":"x"}` {
		t.Errorf("%v, more: %v, %s", first(rows), rows.More, rows.Objects)
	}
}

func TestRowsWithKeysAreInTheirOrder(t *testing.T) {
	t.Parallel()
	rows, err := read(t, `SELECT i, i % 2 AS odd FROM generate_series(1, 4) AS i`, Question{
		Keys: []string{"odd", "i"}, Limit: 4,
	})
	if err != nil {
		t.Fatal(err)
	}
	if first(rows) != "2 4 1 3" || rows.More {
		t.Errorf("%v, more: %v", first(rows), rows.More)
	}
}

func TestValuesAreComparedAsTheTypesOfTheirColumns(t *testing.T) {
	t.Parallel()
	rows, err := read(t, `SELECT i, timestamptz '2026-01-01 00:00Z' + i * interval '1 hour' AS "at hour"
		FROM generate_series(1, 4) AS i`,
		Question{Equal: []Equal{{"at hour", "2026-01-01T04:00:00+01:00"}, {"i", "+3"}}, Limit: 4})
	if err != nil || first(rows) != "3" {
		t.Errorf("%v (%v)", first(rows), err)
	}
}

func TestAColumnOrAValueThatTheViewCannotHaveIsRefused(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]Equal{
		`has no column "nr"`:                    {"nr", "1"},
		"invalid input syntax for type integer": {"number", "one"},
	} {
		_, err := read(t, `SELECT 1 AS number`, Question{Equal: []Equal{e}, Limit: 1})
		var refused *job.Refusal
		if !errors.As(err, &refused) || refused.Code != job.ExitUsage || !strings.Contains(refused.Cause, want) {
			t.Errorf("%+v: %v", e, err)
		}
	}
}

// The question has no fault: the view has. A value of the column's type does not help.
func TestARowThatTheViewCannotComputeIsNotBlamedOnTheQuestion(t *testing.T) {
	t.Parallel()
	for _, equal := range [][]Equal{nil, {{"number", "1"}}} {
		_, err := read(t, `SELECT number, 1 / (number - 1) AS r FROM generate_series(1, 2) AS number`, Question{Equal: equal, Limit: 1})
		var refused *job.Refusal
		if !errors.As(err, &refused) || refused.Code != job.ExitUnhealthy || !strings.Contains(refused.Cause, "division by zero") ||
			!strings.Contains(refused.Next, "serve.columns") {
			t.Errorf("%v: %v", equal, err)
		}
	}
}

func TestEveryDigitIsReadAndTheJSONIsStrict(t *testing.T) {
	t.Parallel()
	rows, err := read(t, `SELECT 9007199254740993 AS id, 18446744073709551615::numeric AS u, 0.1::float8 AS x,
		'NaN'::float8 AS nan, '-Infinity'::float8 AS low, NULL::bigint AS none`, Question{Keys: []string{"id"}, Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"id":9007199254740993,"u":18446744073709551615,"x":0.1,"nan":"NaN","low":"-Infinity","none":null}`
	if got := string(rows.Objects[0]); got != want || !json.Valid(rows.Objects[0]) {
		t.Errorf("JSON is %s", got)
	}
	var texts []string
	for _, v := range rows.Texts[0] {
		if v == nil {
			texts = append(texts, "NULL")
		} else {
			texts = append(texts, *v)
		}
	}
	if got := strings.Join(texts, " "); got != "9007199254740993 18446744073709551615 0.1 NaN -Infinity NULL" {
		t.Errorf("texts are %s", got)
	}
}
