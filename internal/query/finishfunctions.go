package query

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// functionTerm writes a call of a function over terms. typ is its DuckDB type.
func functionTerm(name string, args []term, typ string) (term, error) {
	k, ok := kindOf(typ)
	if !ok {
		return term{}, unknown("%s of type %s", shown(name), typ)
	}
	kinds := make([]string, len(args))
	for i, a := range args {
		kinds[i] = string(a.kind)
	}
	out := with(k, typ, args...)
	if out.strict && slices.Contains([]string{"greatest", "least", "concat"}, name) { // they leave NULL out
		return term{}, unknown("an operation that can fail, inside of %s", shown(name))
	}
	all := func(k valueKind) bool {
		return !slices.ContainsFunc(args, func(a term) bool { return a.kind != k })
	}
	switch {
	case name == "normalized_interval" && all(kindInterval): // comparisons do it in both engines
		return args[0], nil
	case slices.Contains([]string{"greatest", "least"}, name) && sameKind(args...) && args[0].kind == k:
		return extremes(name, args, out), nil
	case all(kindNumber) && k == kindNumber:
		return numberFunction(name, args, out)
	case len(args) > 0 && args[0].kind == kindDouble:
		return doubleFunction(name, args, out)
	case all(kindText) && len(args) > 0:
		return textFunction(name, args, out)
	}
	return timeFunction(name, args, out)
}

func extremes(name string, args []term, out term) term {
	var p, d []string
	for _, a := range args {
		p, d = append(p, a.ordered()), append(d, a.duck)
	}
	out.pg, out.duck = name+"("+strings.Join(p, ", ")+")", name+"("+strings.Join(d, ", ")+")"
	out.size = widest(args)
	return out
}

// numberFunction writes a function of whole numbers and decimals. In DuckDB they have the widest type, so that the
// narrower ones do not overflow.
func numberFunction(name string, args []term, out term) (term, error) {
	for i, a := range args {
		of, _ := fixedType(a.typ)
		widest := "HUGEINT"
		if decimal(a.typ) {
			widest = fmt.Sprintf("DECIMAL(38,%d)", of.scale)
		}
		args[i].duck = "CAST(" + a.duck + " AS " + widest + ")"
	}
	binary := func(op string) (term, error) {
		out.pg, out.duck = fmt.Sprintf("(%s) %s (%s)", args[0].pg, op, args[1].pg), fmt.Sprintf("(%s) %s (%s)",
			args[0].duck, op, args[1].duck)
		return out, nil
	}
	switch {
	case len(args) == 2 && slices.Contains([]string{"+", "-", "*"}, name):
		return binary(name)
	case len(args) == 2 && (name == "//" || name == "%") && !decimal(args[0].typ) && !decimal(args[1].typ):
		call := map[string]string{"//": "div", "%": "mod"}[name]
		out.pg = fmt.Sprintf("%s(%s, nullif(%s, 0))", call, args[0].pg, args[1].pg)
		out.duck = fmt.Sprintf("(%s) %s (%s)", args[0].duck, name, args[1].duck)
		return out, nil
	case len(args) == 1 && name == "-" && !strings.HasPrefix(args[0].typ, "U"): // there DuckDB wraps around
		out.pg, out.duck = "-("+args[0].pg+")", "-("+args[0].duck+")"
		return out, nil
	case len(args) == 1 && slices.Contains([]string{"abs", "sign"}, name), len(args) == 1 && name == "@":
		if name == "@" {
			name = "abs"
		}
		out.pg, out.duck = name+"("+args[0].pg+")", name+"("+args[0].duck+")"
		return out, nil
	case len(args) == 1 && slices.Contains([]string{"round", "floor", "ceil", "ceiling", "trunc"}, name):
		out.pg, out.duck = name+"("+args[0].pg+")", name+"("+args[0].duck+")"
		return out, nil
	case len(args) == 2 && name == "round" && args[1].whole != "":
		return roundedNumber(args, out)
	}
	return term{}, unknown("%s of numbers", operation(name))
}

// roundedNumber writes round(x, n) of a decimal. Both engines round halves away from zero.
func roundedNumber(args []term, out term) (term, error) {
	n, err := strconv.Atoi(args[1].whole)
	if err != nil || n < 0 || n > 30 {
		return term{}, unknown("round() to %s digits", args[1].whole)
	}
	of, _ := fixedType(args[0].typ)
	out.pg = fmt.Sprintf("round(%s, %d)", args[0].pg, min(n, of.scale))
	out.duck = fmt.Sprintf("round(%s, %d)", args[0].duck, n)
	return out, nil
}

// doubleFunction writes a function whose first argument is a double.
func doubleFunction(name string, args []term, out term) (term, error) {
	x := args[0]
	plain := func(name string) term {
		out.pg, out.duck, out.size = name+"("+x.pg+")", name+"("+x.duck+")", x.size
		return out
	}
	two := len(args) == 2
	switch {
	case two && args[1].kind == kindDouble && slices.Contains([]string{"+", "-", "*", "/"}, name):
		return doubleArithmetic(name, x, args[1]), nil
	case two && name == "round" && args[1].whole != "":
		return roundedDouble(args, out)
	case len(args) != 1:
	case name == "-":
		out.pg, out.duck, out.size = "-("+x.pg+")", "-("+x.duck+")", x.size
		return out, nil
	case name == "abs" || name == "@":
		return plain("abs"), nil
	case slices.Contains([]string{"floor", "ceil", "ceiling", "trunc"}, name):
		out = plain(name)
		out.size.least = min(out.size.least, 0)
		return out.jumping(), nil
	case name == "round":
		return roundedDouble([]term{x, {whole: "0"}}, out)
	case name == "sqrt":
		return limitedDomain(x, out, name, "%s >= 0"), nil
	case name == "ln" || name == "log10":
		out = limitedDomain(x, out, map[string]string{"ln": "ln", "log10": "log"}[name], "%s > 0")
		out.duck, out.approx = strings.ReplaceAll(out.duck, "log(", "log10("), true
		out.size = span{-18, 4}
		return out, nil
	case name == "exp":
		body := "CASE WHEN %[1]s = 'NaN'::double precision THEN %[1]s WHEN %[1]s > 690 THEN " + infinity +
			" WHEN %[1]s < -690 THEN 0 ELSE exp(%[1]s) END"
		out.pg = let([]string{x.pg}, func(n []string) string { return fmt.Sprintf(body, n[0]) })
		out.duck, out.approx = fmt.Sprintf(body, "("+x.duck+")"), true
		return out, nil
	case name == "isnan":
		out.pg, out.duck = "("+x.pg+") = 'NaN'::double precision", "isnan("+x.duck+")"
		return out, nil
	}
	return term{}, unknown("%s of doubles", operation(name))
}

// limitedDomain writes a function that both engines refuse outside a domain.
func limitedDomain(x, out term, name, domain string) term {
	body := func(x string) string {
		return "CASE WHEN " + fmt.Sprintf(domain, x) + " THEN " + name + "(" + x + ") END"
	}
	out.pg = let([]string{x.pg}, func(n []string) string { return body(n[0]) })
	out.duck, out.strict, out.size = body("("+x.duck+")"), true, x.size
	return out
}

// roundedDouble writes round(x, n) of a double, which DuckDB computes as round(x * 10^n) / 10^n.
func roundedDouble(args []term, out term) (term, error) {
	n, err := strconv.Atoi(args[1].whole)
	if err != nil || n < 0 || n > 15 {
		return term{}, unknown("round() of a double to %s digits", args[1].whole)
	}
	x := args[0]
	out.size = span{-16, 400}
	if x.size.safe() {
		out.size.most = x.size.most
	}
	power := "1e" + strconv.Itoa(n) + "::double precision"
	out.pg = let([]string{x.pg}, func(names []string) string {
		v := names[0]
		y := "(" + v + " * " + power + ")"
		return fmt.Sprintf("CASE WHEN abs(%[1]s) < 1e290 THEN (%[2]s) / %[3]s ELSE %[1]s END", v, rounded(y), power)
	})
	out.duck = fmt.Sprintf("CASE WHEN abs(%[1]s) < 1e290 THEN round(%[1]s, %[2]d) ELSE %[1]s END", "("+x.duck+")", n)
	return out.jumping(), nil
}

// textFunction writes a function of texts.
func textFunction(name string, args []term, out term) (term, error) {
	switch {
	case name == "||" && len(args) == 2:
		out.pg, out.duck = join(args, " || ")
		return out, nil
	case name == "concat":
		pg, duck := join(args, ", ")
		out.pg, out.duck = "concat("+pg+")", "concat("+duck+")"
		return out, nil
	case name == "length" && len(args) == 1:
		out.pg, out.duck = "char_length("+args[0].pg+")::numeric", "length("+args[0].duck+")"
		return out, nil
	}
	return term{}, unknown("%s of texts", operation(name))
}

// operation returns a function or an operator as people write it.
func operation(name string) string {
	if strings.ContainsAny(name[:1], "abcdefghijklmnopqrstuvwxyz_") {
		return shown(name)
	}
	return "the operator " + name
}
