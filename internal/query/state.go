package query

import "fmt"

// merge is how two stored states of a key are combined.
type merge string

const (
	mergeSum merge = "sum"
	mergeMin merge = "min"
	mergeMax merge = "max"

	mergeBitAnd merge = "bit_and"
	mergeBitOr  merge = "bit_or"
	mergeBitXor merge = "bit_xor"

	mergeFirst merge = "first" // the value of the state that is least by the states named in with
	mergeLast  merge = "last"  // the value of the state that is greatest by them

	mergeMean   merge = "mean"   // with: n
	mergeSet    merge = "set"    // the least different values of two sorted sets, up to limit
	mergeCounts merge = "counts" // counts by name, added; those of the least names, up to limit if there is one

	mergeList merge = "list" // the first entries of two sorted lists, up to limit

	mergeProduct merge = "product" // a sum of products of distances from two means; with: n, mean, mean
)

// state is one stored partial state: the DuckDB expression that computes it from records, and how it merges.
type state struct {
	name  string
	value tree
	merge merge
	with  []string // other states that the merge reads
	limit int
	order string // of a list of entries
	place bool   // the place of a record in the log: a STRUCT in DuckDB, a text in PostgreSQL (place.go)
	of    *item  // the first column that needs it

	duck string // DuckDB type, known after PARTIAL was described
	pg   string
	more []*state // the states named in with
}

// column returns the state in row t or e, with the collation that compares as DuckDB does.
func (s *state) column(row string) string {
	text := row + "." + ident(s.name)
	if textual(s.pg) {
		text += collateC
	}
	return text
}

// combine returns the PostgreSQL text that merges the stored state (row t) with the arriving one (row e).
func (s *state) combine() string {
	t, e := s.column("t"), s.column("e")
	switch s.merge {
	case mergeMin:
		return "least(" + t + ", " + e + ")"
	case mergeMax:
		return "greatest(" + t + ", " + e + ")"
	case mergeBitAnd, mergeBitOr, mergeBitXor:
		return fmt.Sprintf("coalesce(%s %s %s, %[1]s, %[3]s)", t,
			map[merge]string{mergeBitAnd: "&", mergeBitOr: "|", mergeBitXor: "#"}[s.merge], e)
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
	case mergeList:
		return s.combineList()
	default:
		return t + " + " + e
	}
}

// aggregate returns the PostgreSQL text that merges many states of one key (rows e). Over no rows it gives what the
// query gives over no records.
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
	case mergeList:
		return s.aggregateList()
	default:
		return fmt.Sprintf("coalesce(sum(%s), 0)::%s", s.column("e"), s.pg)
	}
}

// extreme returns min or max over many states.
func (s *state) extreme() string {
	e := "e." + ident(s.name)
	switch s.pg {
	case "boolean": // PostgreSQL has no min(boolean)
		if s.merge == mergeMin {
			return "bool_and(" + e + ")"
		}
		return "bool_or(" + e + ")"
	case "uuid": // PostgreSQL has no min(uuid), nor min(bytea) before release 18; their texts sort in the same order
		return fmt.Sprintf("%s(%s::text%s)::uuid", s.merge, e, collateC)
	case "bytea":
		return fmt.Sprintf("decode(%s(encode(%s, 'hex')%s), 'hex')", s.merge, e, collateC)
	default:
		return fmt.Sprintf("%s(%s)", s.merge, s.column("e"))
	}
}
