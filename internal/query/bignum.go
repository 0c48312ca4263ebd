package query

import "fmt"

// ownPrefix starts the names of the macros that oracles use. Queries may not call them (denied).
const ownPrefix = "_kappactl_"

const (
	limbsMacro   = ownPrefix + "limbs"   // of a text of digits: its parts of nine digits, the last one first
	productMacro = ownPrefix + "product" // of two texts of unsigned whole numbers
	timesMacro   = ownPrefix + "times"   // of two texts of whole numbers, as BIGNUM
	decimalMacro = ownPrefix + "decimal" // of a text of a whole number: the number divided by 10^s, as text
)

// macroStatements returns the definitions of the macros. DuckDB can add BIGNUMs but not multiply them, so a product is
// computed from parts of nine digits, as in long multiplication.
func macroStatements() []string {
	const size = "CAST((strlen(t) + 8) // 9 AS INTEGER)"
	digits := "ltrim(t, '-')"
	padded := fmt.Sprintf("lpad(%s, CAST(greatest(strlen(%[1]s), s + 1) AS INTEGER), '0')", digits)
	return append(doubleMacros(), []string{
		fmt.Sprintf("CREATE TEMP MACRO %s(t) AS list_transform(range(1, %s + 1), lambda i: "+
			"CAST(right(left(lpad(t, %[2]s * 9, '0'), CAST((%[2]s - i + 1) * 9 AS INTEGER)), 9) AS HUGEINT))", limbsMacro, size),
		fmt.Sprintf("CREATE TEMP MACRO %s(a, b) AS list_sum(flatten(list_transform(%s(a), lambda x, i: "+
			"list_transform(%[2]s(b), lambda y, j: CAST(CAST(x * y AS VARCHAR) || repeat('0', 9 * (i + j - 2)) AS BIGNUM)))))",
			productMacro, limbsMacro),
		fmt.Sprintf("CREATE TEMP MACRO %s(a, b) AS CASE WHEN starts_with(a, '-') = starts_with(b, '-') "+
			"THEN %s(ltrim(a, '-'), ltrim(b, '-')) ELSE -%[2]s(ltrim(a, '-'), ltrim(b, '-')) END", timesMacro, productMacro),
		fmt.Sprintf("CREATE TEMP MACRO %s(t, s) AS CASE WHEN s = 0 THEN t ELSE "+
			"concat(CASE WHEN starts_with(t, '-') THEN '-' ELSE '' END, left(%s, -s), '.', right(%[2]s, s)) END", decimalMacro,
			padded),
	}...)
}
