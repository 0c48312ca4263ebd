package trial_test

import (
	"testing"

	"github.com/kappactl/kappactl/internal/trial"
)

// The rewrites that dead letters name in their fixes work.
func TestTheFixesOfDeadLettersWork(t *testing.T) {
	for name, c := range map[string][2]string{
		"a number among texts": {
			`source: {topics: [a], columns: {Title: jsonb}}
query: SELECT ("Title"->>'$') AS x, count(*) AS n FROM source GROUP BY 1`,
			`['{"Title":1776}', '{"Title":"Jaws"}'], expect: [{x: "1776", n: 1}, {x: Jaws, n: 1}]`,
		},
		"a number in a string": {
			`source: {topics: [a], columns: {amount: text}}
query: SELECT 1 AS x, sum(CAST(amount AS DECIMAL(10,2))) AS n FROM source GROUP BY 1`,
			`['{"amount":"1.50"}'], expect: [{x: 1, n: 1.50}]`,
		},
		"days since 1970": {
			`source: {topics: [a], columns: {d: integer}}
query: SELECT DATE '1970-01-01' + d AS x, count(*) AS n FROM source GROUP BY 1`,
			`['{"d":20454}'], expect: [{x: "2026-01-01", n: 1}]`,
		},
		"JSON in a string on the way": {
			`source: {topics: [a], columns: {p: text}}
query: SELECT json_extract_string(p, '$.a') AS x, count(*) AS n FROM source GROUP BY 1`,
			`['{"p":"{\"a\":\"b\"}"}'], expect: [{x: b, n: 1}]`,
		},
		"arrays": {
			`source: {topics: [a], format: raw, columns: {v: jsonb}}
query: SELECT e->>'a' AS x, count(*) AS n FROM (SELECT unnest(json_extract(v, '$[*]')) AS e FROM source) GROUP BY 1`,
			`['[{"a":"b"},{"a":"c"}]', '[]', '[{"a":"b"}]'], expect: [{x: b, n: 2}, {x: c, n: 1}]`,
		},
		"JSON in a string": {
			`source: {topics: [a], format: raw, columns: {v: jsonb}}
query: SELECT (json(v->>'$')->>'a') AS x, count(*) AS n FROM source GROUP BY 1`,
			`['"{\"a\":\"b\"}"'], expect: [{x: b, n: 1}]`,
		},
		"lines": {
			`source: {topics: [a], format: raw, columns: {v: text}}
query: SELECT json_extract_string(l, '$.a') AS x, count(*) AS n FROM (SELECT unnest(string_split(v, chr(10))) AS l FROM source) WHERE l <> '' GROUP BY 1`,
			`["{\"a\":\"b\"}\n{\"a\":\"b\"}\n"], expect: [{x: b, n: 2}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, "job: fixed\n"+c[0]+"\nserve: {view: fixed}\ntests:\n  - {name: it is taken, given: "+c[1]+"}\n", func(t *testing.T, r []trial.Result) {
				if !r[0].OK {
					t.Errorf("%+v", r[0])
				}
			})
		})
	}
}
