package mergecheck

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
)

const (
	maxDifferences = 10
	// tolerance is the largest relative difference between two approximate results that counts as equal.
	tolerance = 1e-9
)

// Difference is one row that differs. Want is nil for an unexpected row, Got for a missing one. A nil value is NULL.
type Difference struct {
	Key  map[string]*string `json:"key"`
	Want map[string]*string `json:"want"`
	Got  map[string]*string `json:"got"`
}

// Compare matches rows of the same columns by their keys. PostgreSQL must have printed both sides. Approximate columns
// may differ in their last digits. The differences are sorted by key.
func Compare(columns []job.ViewColumn, want, got []Row) []Difference {
	byKey := map[string][]Row{}
	var order []string
	for _, w := range want {
		k := keyOf(columns, w)
		if byKey[k] == nil {
			order = append(order, k)
		}
		byKey[k] = append(byKey[k], w)
	}
	type pair struct {
		key       string
		want, got Row
	}
	var pairs []pair
	for _, g := range got {
		k := keyOf(columns, g)
		if left := byKey[k]; len(left) > 0 {
			i := max(0, slices.IndexFunc(left, func(w Row) bool { return equal(columns, w, g) }))
			if !equal(columns, left[i], g) {
				pairs = append(pairs, pair{k, left[i], g})
			}
			byKey[k] = slices.Delete(slices.Clone(left), i, i+1)
			continue
		}
		pairs = append(pairs, pair{k, nil, g})
	}
	for _, k := range order {
		for _, w := range byKey[k] {
			pairs = append(pairs, pair{k, w, nil})
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return strings.Compare(a.key, b.key) })
	var out []Difference
	for _, p := range pairs {
		out = append(out, difference(columns, p.want, p.got))
	}
	return out
}

func difference(columns []job.ViewColumn, want, got Row) Difference {
	d := Difference{Key: map[string]*string{}}
	either := want
	if either == nil {
		either = got
	}
	if want != nil {
		d.Want = map[string]*string{}
	}
	if got != nil {
		d.Got = map[string]*string{}
	}
	for i, c := range columns {
		switch {
		case c.Key:
			d.Key[c.Name] = either[i]
		case want != nil && got != nil && same(c, want[i], got[i]):
		default:
			if want != nil {
				d.Want[c.Name] = want[i]
			}
			if got != nil {
				d.Got[c.Name] = got[i]
			}
		}
	}
	return d
}

func keyOf(columns []job.ViewColumn, r Row) string {
	var b strings.Builder
	for i, c := range columns {
		if !c.Key {
			continue
		}
		if r[i] == nil {
			b.WriteString("\x00-")
		} else {
			b.WriteString("\x00=" + *r[i])
		}
	}
	return b.String()
}

func equal(columns []job.ViewColumn, a, b Row) bool {
	for i, c := range columns {
		if !same(c, a[i], b[i]) {
			return false
		}
	}
	return true
}

func same(c job.ViewColumn, a, b *string) bool {
	switch {
	case c.Loose:
		return true
	case a == nil || b == nil:
		return a == b
	case *a == *b:
		return true
	case c.Key:
		return false
	}
	return SameNumber(c, *a, *b)
}

// SameNumber reports whether two numbers of a column are equal: decimals regardless of trailing zeros, approximate and
// floating-point numbers within the tolerance.
func SameNumber(c job.ViewColumn, a, b string) bool {
	if strings.HasPrefix(c.Type, "numeric") && c.Exact {
		return trimmed(a) == trimmed(b)
	}
	if c.Exact && c.Type != "double precision" && c.Type != "real" {
		return false
	}
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return errX == nil && errY == nil && math.Abs(x-y) <= tolerance*math.Max(math.Abs(x), math.Abs(y))
}

func trimmed(number string) string {
	if !strings.Contains(number, ".") {
		return number
	}
	return strings.TrimRight(strings.TrimRight(number, "0"), ".")
}
