package query

import (
	"errors"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

// TestAnErrorOverARecordNamesTheColumn and shows no SQL that was generated.
func TestAnErrorOverARecordNamesTheColumn(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT url, max(CAST(user_id AS BIGINT)) AS a, count(*) AS n FROM source GROUP BY url":                      `column "a": Conversion Error`,
		"SELECT url, count(*) AS n, avg(CAST(user_id AS DECIMAL(10,2))) AS m, max(ts) AS t FROM source GROUP BY url": `column "m": Conversion Error`,
		"SELECT CAST(user_id AS BIGINT) AS k, count(*) AS n FROM source GROUP BY 1":                                  `column "k": Conversion Error`,
		"SELECT url, count(*) AS n FROM source WHERE CAST(user_id AS BIGINT) > 1 GROUP BY url":                       "WHERE: Conversion Error",
		"SELECT url, CAST(user_id AS DATE) AS day FROM source":                                                       `column "day": Conversion Error`,
		"SELECT url, x FROM (SELECT url, CAST(user_id AS BIGINT) AS x FROM source)":                                  `column "x": Conversion Error`,
	} {
		c := mustCompile(t, text)
		s := open(t, Config{})
		_, err := rowsOf(t.Context(), s, c.Land(), reader(t, c.source, c.Fields, []record{{"user_id": "no number", "url": "/a", "_partition": int32(0), "_offset": int64(0)}}, 1))
		got := c.Explain(err)
		if !strings.HasPrefix(got, want) || strings.Contains(got, "SELECT") || !strings.Contains(got, "TRY_CAST") || strings.Contains(got, "\n") {
			t.Errorf("%s\n%s, want %s", text, got, want)
		}
	}
}

// TestAnInternalErrorOfTheEngineIsOneOfTheRecord: the next statement finds another engine.
func TestAnInternalErrorOfTheEngineIsOneOfTheRecord(t *testing.T) {
	s := open(t, Config{})
	err := s.Run(t.Context(), "SELECT date_sub('era', t, TIMESTAMPTZ '2022-01-01') FROM (VALUES (TIMESTAMPTZ '2020-03-29T00:30:00Z')) AS v(t)", nil, nil)
	var exec *ExecError
	if !errors.As(err, &exec) || strings.Contains(exec.Error(), "Stack") || !strings.Contains(exec.Error(), "INTERNAL Error") {
		t.Errorf("%v", err)
	}
	if err := s.Run(t.Context(), "SELECT 1", nil, func(arrow.RecordBatch) error { return nil }); err != nil {
		t.Errorf("the next statement: %v", err)
	}
}
