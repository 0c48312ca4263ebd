package query

import (
	"strings"
	"testing"
)

func TestDecimalsTakenOutOfJSONAreWarnedOfWithTheColumnToDeclare(t *testing.T) {
	for _, c := range []struct{ columns, query, want string }{
		{`{p: jsonb}`, `SELECT CAST(p->>'amount' AS DECIMAL(20,2)) AS a FROM source`, `amount: {type: "numeric(20,2)", path: "$.p.amount"}`},
		{`{p: json}`, `SELECT (p->'x y'->'z')::NUMERIC(20,2) AS a FROM source`, `z: {type: "numeric(20,2)", path: "$.p['x y'].z"}`},
		{`{p: jsonb}`, `SELECT TRY_CAST(json_extract_string(p, '$.items[0].price') AS DECIMAL(9,3)) AS a FROM source`, `price: {type: "numeric(9,3)", path: "$.p.items[0].price"}`},
		{`{p: jsonb}`, `SELECT CAST(p->'l'->>1 AS DECIMAL(9,3)) AS a FROM source`, `value: {type: "numeric(9,3)", path: "$.p.l[1]"}`},
		{`{p: {type: jsonb, path: $.q.p}}`, `SELECT sum(CAST(p->>'a' AS DECIMAL(9,3))) AS a FROM source`, `path: "$.q.p.a"}`},
		{`{p: jsonb}`, `WITH x AS (SELECT p->>'a' AS b FROM source) SELECT sum(b::DECIMAL(9,3)) AS a FROM x`, `a: {type: "numeric(9,3)", path: "$.p.a"}`},
		{`{p: text}`, `SELECT CAST(p->>'a' AS DECIMAL(9,3)) AS a FROM source`, "or let the producer write it as a string"},
		{`{p: jsonb}`, `SELECT CAST(p->>'/a/b' AS DECIMAL(9,3)) AS a FROM source`, "or let the producer write it as a string"},
		{`{p: jsonb}`, `SELECT max(CAST(p.amount AS DECIMAL(30,4))) AS a FROM source`, `amount: {type: "numeric(30,4)", path: "$.p.amount"}`},
		{`{p: jsonb}`, `SELECT max(source.p.amount::NUMERIC(30,4)) AS a FROM source`, `amount: {type: "numeric(30,4)", path: "$.p.amount"}`},
		{`{p: jsonb}`, `SELECT max(p['amount']::DECIMAL(30,4)) AS a FROM source`, `amount: {type: "numeric(30,4)", path: "$.p.amount"}`},
		{`{p: jsonb}`, `SELECT max(p.q.amount::DECIMAL(30,4)) AS a FROM source`, `amount: {type: "numeric(30,4)", path: "$.p.q.amount"}`},
		{`{p: jsonb}`, `SELECT sum(from_json(p, '{"amount":"DECIMAL(30,4)"}').amount) AS a FROM source`, "or let the producer write it as a string"},
		{`{p: jsonb}`, `SELECT sum(json_transform_strict(p, '{"amount":"numeric(30,4)"}').amount) AS a FROM source`, "or let the producer write it as a string"},
		{`{p: jsonb}`, `SELECT sum(from_json(p, '{"amount":"BIGINT"}').amount) AS a FROM source`, ""},
		{`{p: jsonb, t: "numeric(9,3)"}`, `SELECT sum(CAST(source.t AS DECIMAL(9,1))) AS a FROM source`, ""},
		{`{p: jsonb}`, `SELECT CAST(p->>'a' AS BIGINT) AS a, CAST(p->>'b' AS DOUBLE) AS b, p->>'c' AS c FROM source`, ""},
		{`{p: jsonb, t: text}`, `SELECT CAST(t AS DECIMAL(9,3)) AS a, list_transform([1], v -> v + 1)[1] AS b FROM source`, ""},
	} {
		compiled, err := compileFile(t, "job: x\nsource: {topics: [a], columns: "+c.columns+"}\nquery: |\n  "+c.query+"\nserve: {view: x}\n")
		if err != nil {
			t.Errorf("%s: %v", c.query, err)
			continue
		}
		switch w := compiled.Warnings; {
		case c.want == "" && len(w) > 0, c.want != "" && len(w) != 1:
			t.Errorf("%s: %v", c.query, w)
		case c.want != "" && (!strings.Contains(w[0].Cure, c.want) || w[0].Line != 4 || w[0].Column < 3):
			t.Errorf("%s: %s\nwant %s", c.query, w[0], c.want)
		}
	}
}
