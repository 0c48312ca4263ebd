package trial

import (
	"fmt"
	"slices"

	"github.com/kappactl/kappactl/internal/query"
)

// deadLetterMismatch describes how the dead letters differ from those that the test states, or returns "". Unstated
// dead letters are allowed if decoding rejects the record. A record over which the query fails must be stated.
func (r *run) deadLetterMismatch() string {
	stated := r.test.DeadLetters
	var numbers []int
	for _, d := range r.result.DeadLetters {
		numbers = append(numbers, d.Record)
		switch {
		case stated == nil && d.Reason == query.QueryError:
			return fmt.Sprintf("the query (DuckDB SQL) fails on record %d of given: %s; correct the query, or expect this "+
				"with dead_letters: [%[1]d]", d.Record, d.Detail)
		case stated != nil && !slices.Contains(stated, d.Record):
			return fmt.Sprintf("record %d of given becomes a dead letter, which dead_letters does not list: %s: %s", d.Record,
				d.Reason, d.Detail)
		}
	}
	for _, n := range stated {
		if !slices.Contains(numbers, n) {
			return fmt.Sprintf("dead_letters lists record %d of given, which can be processed", n)
		}
	}
	return ""
}
