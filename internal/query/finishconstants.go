package query

import (
	"encoding/json"
	"fmt"
	"strings"
)

// constantTerm writes a constant.
func constantTerm(v tree) (term, error) {
	typ := duckType(v.child("type"))
	k, ok := kindOf(typ)
	switch {
	case v.flag("is_null") && (ok || typ == "NULL" || typ == "SQLNULL" || typ == `"NULL"`):
		if !ok {
			return term{pg: "NULL", duck: "NULL", kind: kindNull, typ: typ}, nil
		}
		return term{pg: "NULL::" + string(k), duck: fmt.Sprintf("CAST(NULL AS %s)", typ), kind: k, typ: typ}, nil
	case !ok:
		return term{}, unknown("a constant of type %s", typ)
	}
	switch x := v["value"].(type) {
	case string:
		if k == kindText {
			return term{pg: literal(x) + "::text", duck: literal(x), kind: k, typ: typ, text: x}, nil
		}
	case bool:
		if k == kindBool {
			return term{pg: fmt.Sprint(x), duck: fmt.Sprint(x), kind: k, typ: typ}, nil
		}
	case json.Number:
		switch k {
		case kindNumber:
			fixed, _ := fixedType(typ)
			text := decimalText(x.String(), fixed.scale)
			t := term{pg: text + "::numeric", duck: fmt.Sprintf("CAST(%s AS %s)", literal(text), typ), kind: k, typ: typ}
			if strings.HasPrefix(text, "-") {
				t.pg = "(" + text + ")::numeric"
			}
			if fixed.scale == 0 {
				t.whole = text
			}
			return t, nil
		case kindDouble:
			return term{
				pg: literal(x.String()) + "::double precision", duck: fmt.Sprintf("CAST(%s AS DOUBLE)", literal(x.String())),
				kind: k, typ: typ, size: sizeOf(x.String()),
			}, nil
		default:
		}
	}
	return term{}, unknown("a constant of type %s", typ)
}

// decimalText writes a whole number divided by 10^scale.
func decimalText(whole string, scale int) string {
	if scale == 0 {
		return whole
	}
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	if len(whole) <= scale {
		whole = strings.Repeat("0", scale+1-len(whole)) + whole
	}
	return sign + whole[:len(whole)-scale] + "." + whole[len(whole)-scale:]
}
