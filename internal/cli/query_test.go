package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
	"github.com/kappactl/kappactl/internal/pg"
	"github.com/kappactl/kappactl/internal/pgtest"
	"github.com/kappactl/kappactl/internal/render"
)

// TestAQueryOfRowsWithoutAKeyReadsNoMoreThanItShows: from a view that has no end.
func TestAQueryOfRowsWithoutAKeyReadsNoMoreThanItShows(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	if _, err := pool.Exec(t.Context(), `CREATE VIEW public.endless AS WITH RECURSIVE n (i) AS (SELECT 10 UNION ALL SELECT i - 1 FROM n) SELECT i, 'x' AS "odd "" name" FROM n`); err != nil {
		t.Fatal(err)
	}
	o := queryOptions{limit: 3}
	var rows rowsOf
	err := pool.ReadOnly(t.Context(), func(tx *pg.Tx) (err error) {
		rows, err = o.read(t.Context(), tx, job.ViewName{Schema: "public", Name: "endless"}, nil)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rows.texts {
		got = append(got, *r[0])
	}
	if len(got) != 3 || got[0] != "10" || !rows.more || string(rows.objects[0]) != `{"i":10,"odd \" name":"x"}` {
		t.Errorf("%v, more: %v, %s", got, rows.more, rows.objects)
	}
}

// TestAQueryPrintsEveryDigitAndStrictJSON: field reports D04 and D06.
func TestAQueryPrintsEveryDigitAndStrictJSON(t *testing.T) {
	t.Parallel()
	pool, _ := pgtest.New(t)
	_, err := pool.Exec(t.Context(), `CREATE VIEW public.numbers AS SELECT 9007199254740993 AS id, 18446744073709551615::numeric AS u, 0.1::float8 AS x,
		'NaN'::float8 AS nan, '-Infinity'::float8 AS low, NULL::bigint AS none`)
	if err != nil {
		t.Fatal(err)
	}
	var rows rowsOf
	err = pool.ReadOnly(t.Context(), func(tx *pg.Tx) (err error) {
		rows, err = queryOptions{limit: 1}.read(t.Context(), tx, job.ViewName{Schema: "public", Name: "numbers"}, []string{"id"})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"id":9007199254740993,"u":18446744073709551615,"x":0.1,"nan":"NaN","low":"-Infinity","none":null}`
	if got := string(rows.objects[0]); got != want || !json.Valid(rows.objects[0]) {
		t.Errorf("JSON is %s", got)
	}
	var texts []string
	for _, v := range rows.texts[0] {
		texts = append(texts, known(v))
	}
	if got := strings.Join(texts, " "); got != "9007199254740993 18446744073709551615 0.1 NaN -Infinity "+render.None {
		t.Errorf("texts are %s", got)
	}
}
