package query

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// spelled is one of the spellings of a column that mean the same outside of a lambda.
func spelled(r *rand.Rand, name string) string {
	return pick(r, name, strings.ToUpper(name), "source."+name, "Source."+name, `"`+name+`"`)
}

// signed is a random expression made of few parts, so that two of them often differ in one place only: the name of a field or
// an argument, a parameter of a lambda, a type, the spelling of a column.
func signed(r *rand.Rand, depth int) string {
	if depth == 0 {
		return pick(r, spelled(r, "small"), spelled(r, "url"), spelled(r, "duration_ms"), "1", "'1'", "1.0")
	}
	x, y := signed(r, depth-1), signed(r, depth-1)
	field, other := pick(r, "low", "LOW", "high", "small"), pick(r, "x", "y")
	switch r.IntN(8) {
	case 0:
		return fmt.Sprintf("{'%s': %s, '%s': %s}", field, x, other, y)
	case 1:
		return fmt.Sprintf("%s(%s := %s, %s := %s)", pick(r, "struct_pack", "STRUCT_PACK"), field, x, other, y)
	case 2:
		return fmt.Sprintf("struct_pack(%s)", pick(r, spelled(r, "small"), spelled(r, "url")))
	case 3:
		return fmt.Sprintf("union_value(%s := %s)", field, x)
	case 4:
		p := pick(r, "source", "small", "e")
		return fmt.Sprintf("list_transform([{'small': %s, 'e': 5}], lambda %s: %s)", x, p, pick(r, p, p+".small", p+".e", "source.small", "small", "SMALL"))
	case 5:
		return fmt.Sprintf("struct_insert({'%s': %s}, %s := %s)", other, x, field, y)
	case 6:
		return fmt.Sprintf("CAST(%s AS %s)", x, pick(r, "VARCHAR", "varchar", "VARCHAR[]"))
	default:
		return fmt.Sprintf("%s([%s], %s)", pick(r, "list_append", "List_Append", "list_contains"), x, x)
	}
}

// TestEqualSignaturesMeanEqualValues: states are shared, and group expressions are bound to columns, by signature.
func TestEqualSignaturesMeanEqualValues(t *testing.T) {
	s := open(t, Config{})
	if err := s.exec(t.Context(), "CREATE TABLE source AS SELECT 7::SMALLINT AS small, '/a' AS url, 100::BIGINT AS duration_ms"); err != nil {
		t.Fatal(err)
	}
	type known struct{ text, value string }
	values := map[string]known{}
	r := rand.New(rand.NewPCG(*seed, 41))
	shared := 0
	for range 1500 {
		text := signed(r, 1+r.IntN(2))
		rows, err := s.texts(t.Context(), fmt.Sprintf("SELECT typeof(%s) || ' ' || CAST(%[1]s AS VARCHAR) FROM source", text))
		if err != nil {
			continue // the types do not fit
		}
		statements, err := s.parse(t.Context(), "SELECT "+text+" AS "+pick(r, "a", "b"))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		signature := statements[0].child("node").list("select_list")[0].signature(SourceRelation)
		was, seen := values[signature]
		switch {
		case !seen:
			values[signature] = known{text, rows[0][0]}
		case was.value != rows[0][0]:
			t.Errorf("equal signatures, other values:\n%s is %s\n%s is %s", was.text, was.value, text, rows[0][0])
		case was.text != text:
			shared++
		}
	}
	if shared < 50 || len(values) < 300 {
		t.Errorf("%d signatures, %d met by another spelling: this proves little", len(values), shared)
	}
}

// TestAggregatesThatDifferInTheNameOfAFieldHaveStatesOfTheirOwn is the fault that the signature's rule prevents.
func TestAggregatesThatDifferInTheNameOfAFieldHaveStatesOfTheirOwn(t *testing.T) {
	c := mustCompile(t, `SELECT url, max(CAST({'low': small} AS VARCHAR)) AS a, max(CAST({'high': small} AS VARCHAR)) AS b,
		max(CAST(struct_pack(low := small) AS VARCHAR)) AS c, max(CAST({'low': source.SMALL} AS VARCHAR)) AS d FROM source GROUP BY url`)
	if names, _ := c.Layout.StagedColumns(); len(c.Layout.States) != 3 {
		t.Errorf("columns %v: want states a, b and c, and none of d, which is a", names)
	}
}
