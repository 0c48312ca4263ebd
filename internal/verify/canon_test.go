package verify

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/kappactl/kappactl/internal/pgtest"
	"github.com/kappactl/kappactl/internal/query"
)

// The same value written in both dialects has to come out as the same text, whatever the sessions' settings.
func TestBothEnginesGiveTheSameTextForAValue(t *testing.T) {
	pool, _ := pgtest.New(t)
	session, err := query.Open(t.Context(), query.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	}()
	cases := []struct{ typ, duckType, postgres, duck, shown string }{
		{"boolean", "BOOLEAN", "true", "true", "true"},
		{"bigint", "BIGINT", "-9223372036854775808", "-9223372036854775808", "-9223372036854775808"},
		{"numeric(12,2)", "DECIMAL(12,2)", "1.50", "1.50", "1.5"},
		{"numeric(12,2)", "DECIMAL(12,2)", "-0.00", "-0.00", "0"},
		{"numeric(12,2)", "DECIMAL(12,2)", "100", "100", "100"},
		{"numeric", "HUGEINT", "170141183460469231731687303715884105727", "170141183460469231731687303715884105727", "170141183460469231731687303715884105727"},
		{"text", "VARCHAR", `E'a\tb\\c\nd'`, `'a' || chr(9) || 'b\c' || chr(10) || 'd'`, "a\tb\\c\nd"},
		{"text", "VARCHAR", `''`, `''`, ""},
		{"text", "VARCHAR", `'\N'`, `'\N'`, `\N`},
		{"uuid", "UUID", "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"},
		{"bytea", "BLOB", `'\x00ff41'`, `'\x00\xff\x41'::BLOB`, `\x00ff41`},
		{"date", "DATE", "'2026-02-28'", "'2026-02-28'", "2026-02-28"},
		{"date", "DATE", "'0044-03-15 BC'", "'0044-03-15 (BC)'", "0044-03-15 (BC)"},
		{"date", "DATE", "'-infinity'", "'-infinity'", "-infinity"},
		{"timestamp without time zone", "TIMESTAMP", "'1969-12-31 23:59:59.999999'", "'1969-12-31 23:59:59.999999'", "1969-12-31 23:59:59.999999"},
		{"timestamp without time zone", "TIMESTAMP_MS", "'2026-01-01 00:00:00.125'", "'2026-01-01 00:00:00.125'", "2026-01-01 00:00:00.125"},
		{"timestamp with time zone", "TIMESTAMPTZ", "'2026-07-01 02:00:00+02'", "'2026-07-01 00:00:00+00'", "2026-07-01 00:00:00+00"},
		{"timestamp with time zone", "TIMESTAMPTZ", "'infinity'", "'infinity'", "infinity"},
		{"time without time zone", "TIME", "'23:59:59.999999'", "'23:59:59.999999'", "23:59:59.999999"},
		{"real", "FLOAT", "0.1", "0.1", "0.10000000149011612"},
		{"double precision", "DOUBLE", "1e300", "1e300", "1e+300"},
		{"double precision", "DOUBLE", "'NaN'", "'NaN'", "nan"},
		{"double precision", "DOUBLE", "'-Infinity'", "'-Infinity'", "-inf"},
		{"text[]", "VARCHAR[]", `ARRAY['a"b', NULL, E'\\', 'é/']`, `['a"b', NULL, '\', 'é/']`, `["a\"b",null,"\\","é/"]`},
		{"bigint[]", "BIGINT[]", `'{}'`, `[]`, `[]`},
		{"date[]", "DATE[]", `'{2026-01-01,NULL}'`, `['2026-01-01', NULL]`, `["20454",null]`},
		{"text", "VARCHAR", "NULL", "NULL", "NULL"},
		{"date", "DATE", "NULL", "NULL", "NULL"},
		{"timestamp with time zone", "TIMESTAMPTZ", "NULL", "NULL", "NULL"},
		{"numeric(5,1)", "DECIMAL(5,1)", "NULL", "NULL", "NULL"},
		{"text[]", "VARCHAR[]", "NULL", "NULL", "NULL"},
	}
	for _, c := range cases {
		t.Run(c.typ+" "+c.postgres, func(t *testing.T) {
			form, err := canonOf("x", c.typ)
			if err != nil {
				t.Fatal(err)
			}
			var fromPostgres *string
			sql := fmt.Sprintf("SELECT %s FROM (SELECT (%s)::%s AS x) q", form.postgres("q.x"), c.postgres, c.typ)
			if err := pool.QueryRow(t.Context(), sql).Scan(&fromPostgres); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
			given := "NULL"
			if fromPostgres != nil {
				given = "'" + strings.ReplaceAll(*fromPostgres, "'", "''") + "'"
			}
			duck := fmt.Sprintf(`SELECT CAST(CAST(%[1]s AS %[2]s) IS NOT DISTINCT FROM %[3]s AS VARCHAR), %[4]s
				FROM (SELECT CAST(%[5]s AS %[6]s) AS x) AS o`, given, form.load, form.duck("o.x"), form.show("CAST("+given+" AS "+form.load+")"), c.duck, c.duckType)
			same, shown := "", "NULL"
			err = session.Run(t.Context(), duck, nil, func(b arrow.RecordBatch) error {
				same = strings.Clone(b.Column(0).(*array.String).Value(0))
				if col := b.Column(1).(*array.String); !col.IsNull(0) {
					shown = strings.Clone(col.Value(0))
				}
				return nil
			})
			if err != nil {
				t.Fatalf("%s: %v", duck, err)
			}
			if same != "true" {
				t.Errorf("PostgreSQL gives %s, DuckDB another text", given)
			}
			if shown != c.shown {
				t.Errorf("shown as %q, want %q", shown, c.shown)
			}
		})
	}
}

func TestATypeThatCannotBeComparedIsRefused(t *testing.T) {
	for _, typ := range []string{"point", "double precision[]", "double precision[][]"} {
		if _, err := canonOf("x", typ); err == nil || !strings.Contains(err.Error(), typ) {
			t.Errorf("%s: %v", typ, err)
		}
	}
}
