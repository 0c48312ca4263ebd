package query

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kappactl/kappactl/internal/job"
)

// moments are timestamps with time zone: spread over all that the type holds, over the years of people, around 1970, and the
// ends of the type.
const moments = `WITH moments AS (
	SELECT make_timestamptz(CAST((CAST(hash(i) AS HUGEINT) - 9223372036854775807) * 99 // 100 AS BIGINT)) AS ts FROM range(20000) r(i)
	UNION ALL SELECT make_timestamptz(CAST(hash(i) % 317000000000000000 AS BIGINT) - 63000000000000000) FROM range(100000) r(i)
	UNION ALL SELECT make_timestamptz(CAST(hash(i) % 200000000 AS BIGINT) - 100000000) FROM range(20000) r(i)
	UNION ALL SELECT unnest(['infinity', '-infinity', NULL, '1582-10-04', '1582-10-15', '0001-01-01 (BC)', '1969-12-31 23:59:59.999999', '294247-01-10 04:00:54']
		::TIMESTAMPTZ[])) `

func TestQuickerFormsEqualTheEnginesOwn(t *testing.T) {
	s := open(t, Config{})
	pairs := map[string]string{"CAST(ts AS DATE)": "coalesce(CAST(make_timestamp(epoch_us(ts)) AS DATE), CAST(ts AS DATE))"}
	for _, part := range quickParts() {
		pairs[fmt.Sprintf("date_trunc('%s', ts)", part)] = fmt.Sprintf("coalesce(make_timestamptz(epoch_us(date_trunc('%s', make_timestamp(epoch_us(ts))))), ts)", part)
	}
	for plain, quick := range pairs {
		sql := fmt.Sprintf(`%s SELECT CAST(count(*) AS VARCHAR), CAST(count(%[2]s) AS VARCHAR),
			CAST(count(*) FILTER (WHERE try(%[2]s) IS DISTINCT FROM try(%[3]s) OR typeof(%[2]s) <> typeof(%[3]s)) AS VARCHAR) FROM moments`,
			moments, plain, quick)
		rows, err := rowsOf(t.Context(), s, strings.ReplaceAll(sql, "count("+plain+")", "count(try("+plain+"))"), nil)
		if err != nil {
			t.Fatalf("%s: %v", plain, err)
		}
		if got := rows[0]; got[0] != "140008" || got[2] != "0" || got[1] < "13" {
			t.Errorf("%s: of %s moments %s have a value and %s differ", plain, got[0], got[1], got[2])
		}
	}
}

func TestLandUsesQuickerFormsOnlyWhereNamesAreCertain(t *testing.T) {
	source := job.Source{Format: "json", Columns: []job.Column{
		{Name: "url", Type: "text"}, {Name: "ts", Type: "timestamp with time zone"}, {Name: "local", Type: "timestamp without time zone"},
	}}
	for query, want := range map[string]bool{
		`SELECT date_trunc('hour', ts) AS h, count(*) AS n FROM source GROUP BY h`:                                       true,
		`SELECT date_trunc('HOUR', "TS") AS h, count(*) AS n FROM source AS s GROUP BY ALL`:                              true,
		`SELECT url, CAST(ts AS DATE) AS d, count(*) AS n FROM source GROUP BY url, d`:                                   true,
		`SELECT ts::DATE AS d, max(date_trunc('hour', ts)) AS n FROM source GROUP BY 1`:                                  true,
		`SELECT date_trunc('hour', local) AS h, count(*) AS n FROM source GROUP BY h`:                                    false,
		`SELECT date_trunc('milliseconds', ts) AS h, count(*) AS n FROM source GROUP BY h`:                               false,
		`SELECT date_trunc('decade', ts) AS h, count(*) AS n FROM source GROUP BY h`:                                     false,
		`SELECT date_trunc(url, ts) AS h, count(*) AS n FROM source GROUP BY h`:                                          false,
		`SELECT TRY_CAST(ts AS DATE) AS h, count(*) AS n FROM source GROUP BY h`:                                         false,
		`SELECT date_trunc('hour', ts) AS h, count(*) AS n FROM (SELECT local AS ts FROM source) GROUP BY h`:             false,
		`WITH s AS (SELECT local AS ts FROM source) SELECT date_trunc('hour', ts) AS h, count(*) AS n FROM s GROUP BY h`: false,
		`SELECT date_trunc('hour', ts) AS h, count(*) AS n FROM source AS s(ts, url, local) GROUP BY h HAVING true`:      false,
	} {
		c, err := Compile(t.Context(), &job.Spec{Source: source, Query: query})
		if err != nil {
			if strings.Contains(query, "HAVING") || strings.Contains(query, "s(ts") {
				continue // refused is certain enough
			}
			t.Errorf("%s: %v", query, err)
			continue
		}
		if got := strings.Contains(c.Land(), "epoch_us"); got != want {
			t.Errorf("%s: quick %t, want %t: %s", query, got, want, c.Land())
		}
		if strings.Contains(c.Partial, "epoch_us") {
			t.Errorf("%s: PARTIAL itself changed: %s", query, c.Partial)
		}
	}
}
