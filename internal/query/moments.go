package query

import "fmt"

// Means and sums of products of distances from them merge by the formula of Chan, Golub and LeVeque ("Updating formulae
// and a pairwise algorithm for computing sample variances", 1979):
//
//	mean = a.mean + d · b.n / (a.n + b.n)         with d = b.mean - a.mean
//	m2   = a.m2 + b.m2 + d² · a.n · b.n / (a.n + b.n)
//
// For two variables the product of their two distances replaces d².

// combineMean merges two means.
func (s *state) combineMean() string {
	n, t, e := ident(s.with[0]), s.column("t"), s.column("e")
	return fmt.Sprintf("CASE WHEN t.%[1]s = 0 THEN %[3]s WHEN e.%[1]s = 0 THEN %[2]s WHEN abs(%[3]s - %[2]s) < %[4]s "+
		"THEN %[2]s ELSE %[2]s + (%[3]s - %[2]s) * (e.%[1]s / (t.%[1]s + e.%[1]s)::double precision) END", n, t, e,
		negligible)
}

// combineProduct merges two sums of products.
func (s *state) combineProduct() string {
	n, t, e := ident(s.with[0]), s.column("t"), s.column("e")
	distance := func(mean string) string { return fmt.Sprintf("(e.%[1]s - t.%[1]s)", ident(mean)) }
	return fmt.Sprintf("%[2]s + %[3]s + CASE WHEN t.%[1]s = 0 OR e.%[1]s = 0 THEN 0 ELSE %[4]s * (t.%[1]s::double "+
		"precision * e.%[1]s / (t.%[1]s + e.%[1]s)) END",
		n, t, e, product(distance(s.with[1]), distance(s.with[2])))
}

// aggregateMean returns the mean of means. It starts from the least of them, so that equal means yield exactly that
// value.
func (s *state) aggregateMean() string {
	n, m := ident(s.with[0]), s.column("e")
	arrays := fmt.Sprintf("array_agg(e.%s) FILTER (WHERE e.%[1]s > 0), array_agg(%s) FILTER (WHERE e.%[1]s > 0)", n, m)
	return fmt.Sprintf(`coalesce((SELECT b.m + CASE WHEN abs(sum(u.n * (u.m - b.m))) < %[4]s THEN 0 ELSE sum(u.n * (u.m - b.m)) / sum(u.n) END
		FROM unnest(%[1]s) AS u(n, m), (SELECT min(%[2]s) FILTER (WHERE e.%[3]s > 0)) AS b(m) GROUP BY b.m), 0)::double precision`,
		arrays, m, n, negligible)
}

// aggregateProduct sums the products of many rows around their common means.
func (s *state) aggregateProduct() string {
	n, p := ident(s.with[0]), s.column("e")
	some := fmt.Sprintf(" FILTER (WHERE e.%s > 0)", n)
	names, arrays, means := "n, p", fmt.Sprintf("array_agg(e.%s)%s, array_agg(%s)%[2]s", n, some, p), ""
	distances := []string{}
	for i, mean := range s.more[1:] {
		name := []string{"a", "b"}[i]
		if i == 1 && s.with[1] == s.with[2] {
			name = "a"
		} else {
			names += ", " + name
			arrays += fmt.Sprintf(", array_agg(%s)%s", mean.column("e"), some)
			means += fmt.Sprintf(", (SELECT %s) AS mean_%s(%[2]s)", mean.aggregateMean(), name)
		}
		distances = append(distances, fmt.Sprintf("(u.%[1]s - mean_%[1]s.%[1]s)", name))
	}
	return fmt.Sprintf(`coalesce((SELECT sum(u.p + %s * u.n) FROM unnest(%s) AS u(%s)%s), 0)::double precision`,
		product(distances[0], distances[1]), arrays, names, means)
}

// product multiplies without the errors that PostgreSQL raises for infinity and near zero.
func product(a, b string) string {
	tiny, huge := fmt.Sprintf("abs%s < 1e-140", a), fmt.Sprintf("abs%s > 1e140", a)
	if a != b {
		tiny, huge = tiny+fmt.Sprintf(" OR abs%s < 1e-140", b), huge+fmt.Sprintf(" OR abs%s > 1e140", b)
	}
	return fmt.Sprintf("CASE WHEN %s THEN 0 WHEN %s THEN 'NaN' ELSE %s * %s END", tiny, huge, a, b)
}
