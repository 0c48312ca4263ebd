package query

import "fmt"

// castTerm writes a cast to a DuckDB type.
func castTerm(of term, typ string) (term, error) {
	k, ok := kindOf(typ)
	out := with(k, typ, of)
	out.pg, out.duck, out.size, out.text, out.whole = of.pg, of.duck, of.size, of.text, of.whole
	switch {
	case !ok:
		return term{}, unknown("a cast to %s", typ)
	case of.kind == kindNull:
		out.pg, out.duck = "NULL::"+string(k), fmt.Sprintf("CAST(NULL AS %s)", typ)
		return out, nil
	case of.typ == typ:
		return of, nil
	case of.kind == kindNumber && k == kindNumber:
		return numberCast(of, out), nil
	case of.kind == kindNumber && k == kindDouble:
		// DuckDB rounds large decimals twice; their text is rounded once.
		out.pg, out.duck = "("+of.pg+")::double precision", "CAST(CAST("+of.duck+" AS VARCHAR) AS DOUBLE)"
		out.size, out.whole = span{exactLeast, exactMost}, ""
		return out, nil
	case of.kind == kindReal && k == kindDouble:
		out.pg, out.duck = "("+of.pg+")::double precision", "CAST("+of.duck+" AS DOUBLE)"
		return out, nil
	case of.kind == kindDouble && k == kindNumber:
		return numberOf(of, out)
	case of.kind == kindBool && k == kindNumber:
		out.pg = fmt.Sprintf("CASE WHEN %s THEN 1 WHEN NOT (%[1]s) THEN 0 END::numeric", of.pg)
		out.duck = fmt.Sprintf("CAST(%s AS %s)", of.duck, typ)
		return out, nil
	case of.kind == kindTime && k == kindDate:
		out.pg, out.duck = "("+of.pg+")::date", "CAST("+of.duck+" AS DATE)"
		return out, nil
	case of.kind == kindZoned && (k == kindDate || k == kindTime):
		out.pg, out.duck = fmt.Sprintf("((%s) AT TIME ZONE 'UTC')::%s", of.pg, k), fmt.Sprintf("CAST(%s AS %s)", of.duck, typ)
		return out, nil
	case of.kind == kindNumber && k == kindText && !decimal(of.typ):
		out.pg, out.duck = "("+of.pg+")::text", "CAST("+of.duck+" AS VARCHAR)"
		return out, nil
	}
	return term{}, unknown("a cast from %s to %s", of.typ, typ)
}

func decimal(typ string) bool {
	base, _ := splitType(typ)
	return base == "DECIMAL"
}

// numberCast writes a cast between whole numbers and decimals. Both engines round halves away from zero. Numbers
// outside the range of the type, over which DuckDB raises an error, keep their value until they are served.
func numberCast(of, out term) term {
	from, _ := fixedType(of.typ)
	to, _ := fixedType(out.typ)
	switch {
	case decimal(out.typ):
		out.duck = fmt.Sprintf("CAST(%s AS DECIMAL(38,%d))", of.duck, to.scale) // not to fail over large numbers
		if to.scale < from.scale {
			out.pg = fmt.Sprintf("round(%s, %d)", of.pg, to.scale)
		}
		if to.scale > 0 {
			out.whole = ""
		}
	case from.scale > 0:
		out.pg, out.duck, out.whole = fmt.Sprintf("round(%s)", of.pg), fmt.Sprintf("CAST(%s AS HUGEINT)", of.duck), ""
	default:
		out.duck = fmt.Sprintf("CAST(%s AS HUGEINT)", of.duck)
	}
	return out
}

// wholeLimits are the greatest numbers of DuckDB's signed whole numbers.
var wholeLimits = map[string]string{
	"TINYINT": "127", "SMALLINT": "32767", "INTEGER": "2147483647", "BIGINT": "9223372036854775807",
}

// numberOf writes a cast of a double to a whole number, where both engines round halves to the even number, or to a
// decimal, where DuckDB rounds x * 10^scale with halves away from zero. It is NULL where the number is too large.
func numberOf(of, out term) (term, error) {
	out.strict, out.ranged, out.whole = true, true, ""
	if !decimal(out.typ) {
		most, ok := wholeLimits[out.typ]
		if !ok {
			return term{}, unknown("a cast from %s to %s", of.typ, out.typ)
		}
		// Behind the last whole number DuckDB's cast wraps around: 2147483647.5 becomes -2147483648.
		limit := "%[1]s >= CAST(-%[2]s - 1 AS double precision) AND %[1]s <= CAST(%[2]s AS double precision)"
		if out.typ == "BIGINT" {
			limit = "%[1]s >= -9223372036854775808 AND %[1]s < 9223372036854775808"
		}
		out.pg = let([]string{of.pg}, func(n []string) string {
			return fmt.Sprintf("CASE WHEN "+limit+" THEN round(%[1]s)::bigint::numeric END", n[0], most)
		})
		out.duck = fmt.Sprintf("CASE WHEN "+limit+" THEN TRY_CAST(%[1]s AS %[3]s) END", "("+of.duck+")", most, out.typ)
		return out.jumping(), nil
	}
	to, _ := fixedType(out.typ)
	if to.scale > 15 {
		return term{}, unknown("a cast from %s to %s", of.typ, out.typ)
	}
	digits := min(to.digits, 18) - to.scale
	if digits < 0 {
		return term{}, unknown("a cast from %s to %s", of.typ, out.typ)
	}
	within := fmt.Sprintf("abs(%%s) < %s", "1e"+fmt.Sprint(digits))
	unit := "1"
	if to.scale > 0 {
		unit = "0." + fmt.Sprintf("%0*d", to.scale, 1)
	}
	out.pg = let([]string{of.pg}, func(n []string) string {
		y := fmt.Sprintf("(%s * 1e%d::double precision)", n[0], to.scale)
		return fmt.Sprintf("CASE WHEN "+within+" THEN (%s)::bigint::numeric * %s END", n[0], rounded(y), unit)
	})
	out.duck = fmt.Sprintf("CASE WHEN "+within+" THEN TRY_CAST(%s AS %s) END", "("+of.duck+")", of.duck, out.typ)
	out.ranged = false // a value just below the limit can be rounded up to it
	return out.jumping(), nil
}
