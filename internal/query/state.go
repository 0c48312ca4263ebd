package query

import "fmt"

// merge is how two stored states of a key become one.
type merge string

const (
	mergeSum merge = "sum"
	mergeMin merge = "min"
	mergeMax merge = "max"

	mergeBitAnd merge = "bit_and"
	mergeBitOr  merge = "bit_or"
	mergeBitXor merge = "bit_xor"

	mergeFirst merge = "first" // the value of the state that is least by the states named in with
	mergeLast  merge = "last"  // the same for the greatest

	mergeMean   merge = "mean"   // with: n
	mergeSet    merge = "set"    // the least different values of two sorted sets, up to limit
	mergeCounts merge = "counts" // counts by name, added; those of the least names, up to limit when there is one

	mergeProduct merge = "product" // a sum of products of distances from two means; with: n, mean, mean
)

// state is one stored partial state: the DuckDB expression that computes it from records, and how it merges.
type state struct {
	name  string
	value tree
	merge merge
	with  []string // other states that the merge looks at
	limit int
	place bool  // the place of a record in the log: a STRUCT in DuckDB, a text in PostgreSQL (place.go)
	of    *item // the first column that needs it

	duck string // DuckDB type, known after PARTIAL was described
	pg   string
	more []*state // those of with
}

// column is the state in row t or e, comparing as DuckDB compares.
func (s *state) column(row string) string {
	text := row + "." + ident(s.name)
	if textual(s.pg) {
		text += collateC
	}
	return text
}

// combine merges the stored state (row t) with the arriving one (row e), as PostgreSQL text.
func (s *state) combine() string {
	t, e := s.column("t"), s.column("e")
	switch s.merge {
	case mergeMin:
		return "least(" + t + ", " + e + ")"
	case mergeMax:
		return "greatest(" + t + ", " + e + ")"
	case mergeBitAnd, mergeBitOr, mergeBitXor:
		return fmt.Sprintf("coalesce(%s %s %s, %[1]s, %[3]s)", t, map[merge]string{mergeBitAnd: "&", mergeBitOr: "|", mergeBitXor: "#"}[s.merge], e)
	case mergeFirst, mergeLast:
		return s.combinePick()
	case mergeMean:
		return s.combineMean()
	case mergeProduct:
		return s.combineProduct()
	case mergeSet:
		return s.combineSet()
	case mergeCounts:
		return s.combineCounts()
	default:
		return t + " + " + e
	}
}

// aggregate merges many states of one key (rows e), as PostgreSQL text. Over no rows it gives what the query gives over no
// records.
func (s *state) aggregate() string {
	switch s.merge {
	case mergeMin, mergeMax:
		return s.extreme()
	case mergeBitAnd, mergeBitOr, mergeBitXor:
		return fmt.Sprintf("%s(%s)", s.merge, s.column("e"))
	case mergeFirst, mergeLast:
		return s.aggregatePick()
	case mergeMean:
		return s.aggregateMean()
	case mergeProduct:
		return s.aggregateProduct()
	case mergeSet:
		return s.aggregateSet()
	case mergeCounts:
		return s.aggregateCounts()
	default:
		return fmt.Sprintf("coalesce(sum(%s), 0)::%s", s.column("e"), s.pg)
	}
}

// extreme is min or max over many states.
func (s *state) extreme() string {
	e := "e." + ident(s.name)
	switch s.pg {
	case "boolean": // PostgreSQL has no min(boolean)
		if s.merge == mergeMin {
			return "bool_and(" + e + ")"
		}
		return "bool_or(" + e + ")"
	case "uuid": // nor min(uuid) and min(bytea) before release 18; their text orders as they do
		return fmt.Sprintf("%s(%s::text%s)::uuid", s.merge, e, collateC)
	case "bytea":
		return fmt.Sprintf("decode(%s(encode(%s, 'hex')%s), 'hex')", s.merge, e, collateC)
	default:
		return fmt.Sprintf("%s(%s)", s.merge, s.column("e"))
	}
}
