package query

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kappactl/kappactl/internal/job"
)

func mustCompile(t testing.TB, query string) *Compiled {
	t.Helper()
	c, err := Compile(t.Context(), parseJob(t, "job.yaml", jobText(query)))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestLandGivesTheStagedColumnsAsTextInTheirOrder(t *testing.T) {
	c := mustCompile(t, "SELECT url, sum(duration_ms) AS s, date_trunc('day', ts) AS hour FROM source GROUP BY url, hour")
	s := open(t, Config{})
	records := []record{
		{"url": "/a", "ts": int64(1_700_000_000_000_000), "duration_ms": int64(3)},
		{"url": "/a", "ts": int64(1_700_000_000_000_001), "duration_ms": nil},
		{"url": nil, "ts": nil, "duration_ms": int64(-1)},
	}
	rows := sorted(mustRows(t, s, c.Land(), reader(t, c.source, c.Fields, records, 10)))
	want := [][]string{{null, null, "-1", "1"}, {"2023-11-14 00:00:00+00", "/a", "3", "1"}}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Error(diff)
	}
	names, _ := c.Layout.StagedColumns()
	if diff := cmp.Diff([]string{"hour", "url", "s__s", "s__n"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestLandCarriesThePlaceOfARecordThroughCTEsAndSubqueries(t *testing.T) {
	for _, query := range []string{
		"SELECT url, last(user_id) AS l FROM source GROUP BY url",
		"WITH a AS (SELECT url, user_id FROM source) SELECT url, last(user_id) AS l FROM (SELECT lower(url) AS url, user_id FROM a) GROUP BY url",
		"WITH a AS (SELECT * FROM source) SELECT url, last(user_id) AS l FROM (SELECT t.* FROM a t) GROUP BY url",
		"WITH source AS (SELECT url, user_id, _partition AS p FROM source) SELECT url, last(user_id) AS l FROM source GROUP BY 1",
		"SELECT url, last(user_id) AS l FROM (SELECT st.* FROM (SELECT {'url': url, 'user_id': user_id} AS st FROM source)) GROUP BY url",
		"SELECT url, last(user_id) AS l FROM (SELECT url, user_id, unnest([1]) AS one FROM source) GROUP BY url",
	} {
		c := mustCompile(t, query)
		s := open(t, Config{})
		var records []record
		for i := range int64(10) {
			at := i * 3 % 10
			records = append(records, record{
				"url": "/a", "user_id": fmt.Sprint("u", at), "_topic": "t", "_partition": int32(0), "_offset": at, "_timestamp": int64(0),
			})
		}
		rows := mustRows(t, s, c.Land(), reader(t, c.source, c.Fields, records, 3))
		if len(rows) != 1 || !slices.Contains(rows[0], "u9") {
			t.Errorf("%s: %v, want the last, u9", query, rows)
		}
	}
}

func TestAQueryThatNeedsNoColumnStillReadsOne(t *testing.T) {
	c := mustCompile(t, "SELECT count(*) AS n FROM source")
	if diff := cmp.Diff([]string{"_partition"}, c.Fields); diff != "" {
		t.Error(diff)
	}
}

func TestLandRefusesKeysThatNoIndexHolds(t *testing.T) {
	s := open(t, Config{})
	for _, query := range []string{
		"SELECT url, user_id, count(*) AS n FROM source GROUP BY url, user_id",
		"SELECT repeat(url, 2) AS u, count(*) AS n FROM source GROUP BY u",
		"SELECT CAST(url || user_id AS BLOB) AS u, count(*) AS n FROM source GROUP BY u",
		"SELECT [url, user_id] AS u, count(*) AS n FROM source GROUP BY u",
	} {
		c := mustCompile(t, query)
		for size, long := range map[int]bool{900: false, 1100: true} {
			records := []record{{"url": strings.Repeat("x", size), "user_id": strings.Repeat("y", size)}}
			_, err := rowsOf(t.Context(), s, c.Land(), reader(t, c.source, c.Fields, records, 1))
			var ee *ExecError
			if long != (errors.As(err, &ee) && strings.Contains(err.Error(), "key_too_long")) {
				t.Errorf("%s with texts of %d bytes: %v", query, size, err)
			}
		}
	}
}

func TestLandRefusesTimesThatPostgreSQLCannotHold(t *testing.T) {
	s := open(t, Config{})
	for _, query := range []string{
		"SELECT day, count(*) AS n FROM source GROUP BY day",
		"SELECT url, min(day) AS m FROM source GROUP BY url",
	} {
		c := mustCompile(t, query)
		for day, bad := range map[int32]bool{-2440588: false, -2440589: true, 2145042905: false, 2145042906: true, infiniteDay: false, -infiniteDay: false} {
			records := []record{{"url": "/a", "day": day}}
			_, err := rowsOf(t.Context(), s, c.Land(), reader(t, c.source, c.Fields, records, 1))
			if bad != (err != nil && strings.Contains(err.Error(), "out_of_range")) {
				t.Errorf("%s with day %d: %v", query, day, err)
			}
		}
	}
	c := mustCompile(t, "SELECT date_trunc('day', ts) AS t, max(local) AS l, count(*) AS n FROM source GROUP BY t")
	first := int64(-2440588) * microsPerDay
	for moment, bad := range map[int64]bool{first: false, first - 1: true} {
		records := []record{{"ts": moment, "local": moment}}
		_, err := rowsOf(t.Context(), s, c.Land(), reader(t, c.source, c.Fields, records, 1))
		if bad != (err != nil && strings.Contains(err.Error(), "out_of_range")) {
			t.Errorf("moment %d: %v", moment, err)
		}
	}
}

func TestTextOfEveryTypeIsReadBackByPostgreSQL(t *testing.T) {
	l := newMergeRig(t)
	for _, c := range []struct{ value, duck, pg, want string }{
		{"'0044-03-15 (BC)'::DATE", "DATE", "date", "0044-03-15 BC"},
		{"'0044-03-15 (BC) 10:00:00.5+00'::TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE", "timestamp with time zone", "0044-03-15 10:00:00.5+00 BC"},
		{"'0044-03-15 (BC) 10:00:00'::TIMESTAMP", "TIMESTAMP", "timestamp without time zone", "0044-03-15 10:00:00 BC"},
		{"'12024-01-01'::DATE", "DATE", "date", "12024-01-01"},
		{"'12024-01-01 00:00:00'::TIMESTAMP", "TIMESTAMP", "timestamp without time zone", "12024-01-01 00:00:00"},
		{"'infinity'::TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE", "timestamp with time zone", "infinity"},
		{"'-infinity'::DATE", "DATE", "date", "-infinity"},
		{"'24:00:00'::TIME", "TIME", "time without time zone", "24:00:00"},
		{"INTERVAL '1 year 2 months -3 days 04:05:06.5'", "INTERVAL", "interval", "1 year 2 mons -3 days +04:05:06.5"},
		{"'\\x00\\xFFa'::BLOB", "BLOB", "bytea", `\x00ff61`},
		{"'nan'::DOUBLE", "DOUBLE", "double precision", "NaN"},
		{"'-inf'::FLOAT", "FLOAT", "real", "-Infinity"},
		{"0.1::FLOAT", "FLOAT", "real", "0.1"},
		{"1e300", "DOUBLE", "double precision", "1e+300"},
		{"170141183460469231731687303715884105727::HUGEINT", "HUGEINT", "numeric", "170141183460469231731687303715884105727"},
		{"-0.05::DECIMAL(5,2)", "DECIMAL(5,2)", "numeric(5,2)", "-0.05"},
		{"true", "BOOLEAN", "boolean", "true"},
		{"['a', NULL, 'NULL', '', 'q\"uo', 'b\\s', 'c,{}']", "VARCHAR[]", "text[]", `{a,NULL,"NULL","","q\"uo","b\\s","c,{}"}`},
		{"[]::INTEGER[]", "INTEGER[]", "integer[]", "{}"},
		{"['\\x5C22'::BLOB]", "BLOB[]", "bytea[]", `{"\\x5c3232"}`},
		{"[DATE '2024-01-01']", "DATE[]", "date[]", "{2024-01-01}"},
		{"{'b': 1.50::DECIMAL(4,2), 'a': ['x\"', NULL]}", "STRUCT(b DECIMAL(4,2), a VARCHAR[])", "jsonb", `{"a": ["x\"", null], "b": 1.5}`},
		{"MAP {'k': 1}", "MAP(VARCHAR, INTEGER)", "jsonb", `{"k": 1}`},
		{"[[1, 2], [3]]", "INTEGER[][]", "jsonb", "[[1, 2], [3]]"},
		{"'{\"a\": 12345678901234567890.5}'::JSON", "JSON", "jsonb", `{"a": 12345678901234567890.5}`},
		{"NULL::INTEGER[]", "INTEGER[]", "integer[]", null},
		{"NULL::DATE", "DATE", "date", null},
	} {
		if pg, ok := resultType(c.duck); !ok || pg != c.pg {
			t.Errorf("%s maps to %s, want %s", c.duck, pg, c.pg)
		}
		rows := mustRows(t, l.duck, "SELECT "+postgresText("v", c.duck)+", typeof(v) FROM (SELECT "+c.value+" AS v)", nil)
		if rows[0][1] != c.duck {
			t.Errorf("%s is a %s, not a %s", c.value, rows[0][1], c.duck)
		}
		var text *string
		if rows[0][0] != null {
			text = &rows[0][0]
		}
		if got := l.query("SELECT ($1::text)::"+c.pg+"::text", text); got[0][0] != c.want {
			t.Errorf("%s became %q, read as %q, want %q", c.value, rows[0][0], got[0][0], c.want)
		}
	}
}

func TestEveryDeclaredTypeHasAColumnInSource(t *testing.T) {
	for pg, duck := range map[string]string{
		"bigint": "BIGINT", "integer": "INTEGER", "smallint": "SMALLINT", "boolean": "BOOLEAN", "real": "FLOAT",
		"double precision": "DOUBLE", "numeric(12,3)": "DECIMAL(12,3)", "text": "VARCHAR", "character varying(9)": "VARCHAR",
		"bytea": "BLOB", "date": "DATE", "time without time zone": "TIME", "timestamp without time zone": "TIMESTAMP",
		"timestamp with time zone": "TIMESTAMP WITH TIME ZONE", "uuid": "UUID", "json": "JSON", "jsonb": "JSON",
	} {
		if got := sourceType(pg); got != duck {
			t.Errorf("%s is %s, want %s", pg, got, duck)
		}
	}
}

func TestServeSettingsAreCheckedAgainstTheQuery(t *testing.T) {
	query := "SELECT url, sum(duration_ms) AS total FROM source GROUP BY url"
	for name, c := range map[string]struct{ serve, path, cause string }{
		"a computed column of the same name": {"  columns: {URL: upper(url)}\n", "serve.columns.URL", `already has a column "URL"`},
		"an index on an output":              {"  indexes: [[url], [total]]\n", "serve.indexes[1]", `"total" is computed by the view`},
		"an expiry without a time":           {"  keep: 90d\n", "serve.keep", "needs a time"},
		"a key":                              {"  key: [url]\n", "serve.key", "GROUP BY"},
	} {
		t.Run(name, func(t *testing.T) {
			problems := problemsOf(t, parseJob(t, "job.yaml", jobText(query)+c.serve))
			at := slices.IndexFunc(problems, func(p job.Problem) bool { return p.Path == c.path })
			if at < 0 || !strings.Contains(problems[at].Cause, c.cause) || problems[at].Cure == "" || problems[at].Dialect != job.PostgreSQL {
				t.Errorf("want %s: %s, got %v", c.path, c.cause, problems)
			}
		})
	}
}

func TestServeColumnsAndWhereAreKeptInTheLayout(t *testing.T) {
	spec := parseJob(t, "job.yaml", jobText("SELECT url, sum(d) AS total, count(*) AS n FROM source GROUP BY url")+
		"  columns: {per_view: \"total / nullif(n, 0)\"}\n  where: n > 0\n")
	c, err := Compile(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	want := job.ViewColumn{Name: "per_view", Finish: "total / nullif(n, 0)", StoredAs: "computed", Computed: true}
	if diff := cmp.Diff(want, c.Layout.View[3]); diff != "" {
		t.Error(diff)
	}
	if c.Layout.Where != "n > 0" {
		t.Errorf("where is %q", c.Layout.Where)
	}
}

// TestAveragesAreThoseOfFinishWhateverTheEngineRounds: the engine divides in 80 bits and rounds again, so that one average
// in seven of decimals, and one in three of totals beyond 2^53, is off in its last place; Oracle must be what FINISH computes.
func TestAveragesAreThoseOfFinishWhateverTheEngineRounds(t *testing.T) {
	l := newMergeRig(t)
	c := mustCompile(t, "SELECT small, avg(duration_ms) AS a, avg(duration_ms::HUGEINT * 1000000007) AS b, avg(price) AS c FROM source GROUP BY small")
	var records []record
	state := uint64(1)
	for i := range 120_000 {
		state = state*6364136223846793005 + 1442695040888963407
		records = append(records, record{"small": int16(i % 40), "duration_ms": int64(state >> 44), "price": int64(state >> 40)})
	}
	l.tables(c.Layout)
	l.upsert(c.Layout, l.land(c, records))
	rows := mustRows(t, l.duck, c.Oracle, reader(t, c.source, c.Fields, records, 20_000))
	want := map[string][]string{}
	for _, r := range rows {
		want[r[0]] = r[1:]
	}
	for _, r := range l.plain(c.Layout) {
		for i, text := range r[1:] {
			got, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			if once, err := strconv.ParseFloat(want[r[0]][i], 64); err != nil || once != got {
				t.Errorf("group %s: %s in PostgreSQL, %s in one pass", r[0], text, want[r[0]][i])
			}
		}
	}
}

// The tables of versions that are served keep their columns when a later release compiles their query.
func TestPickedValuesHaveTheColumnOfTheirName(t *testing.T) {
	c := mustCompile(t, `SELECT url, last(to_days(small)) AS span, any_value(ts) AS moment, arg_max(to_days(small), ts) AS late,
		arg_min(user_id, ts) AS early, first([small]) AS list FROM source GROUP BY url`)
	names, _ := c.Layout.StagedColumns()
	for _, want := range []string{"span", "moment", "late", "early", "list__list"} {
		if !slices.Contains(names, want) {
			t.Errorf("no column %s in %v", want, names)
		}
	}
}
