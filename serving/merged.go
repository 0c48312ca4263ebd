package serving

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
)

// merged is the relation of the rows of a version of mode lambda, with one row for each key: the rows of the live
// generation, and those of its table that were written in its epoch or later.
//
// The conditions are outside the UNION ALL, since PostgreSQL pulls up a branch only when it has no WHERE of its own,
// and without that neither a key nor an order reaches the indexes. The generation is read in the statement itself: its
// rows and those of the table are of one snapshot. Rows that are appended are each in one layer only and need no GROUP
// BY.
//
// A session that holds a lock on the batch table from before an ATTACH, in a transaction with several statements, may
// plan or have planned without the new partition, although the pointer that its next snapshot has names it: its rows
// would be missing without an error. So the pointer counts up to the number that the function known returns, which the
// planner makes part of the plan. The function is replaced after the ATTACH: a plan that has the new number has the
// partition. An older number is a generation that such a plan does have, and that stays, with its epochs, while a
// transaction may read it (Detach).
func merged(v job.Version) string {
	names, _ := v.Layout.StagedColumns()
	columns := make([]string, len(names))
	for i, n := range names {
		columns[i] = ident(n)
	}
	stored := strings.Join(columns, ", ")
	generation, epoch := ident(job.GenerationColumn), ident(job.EpochColumn)
	live := fmt.Sprintf("(SELECT least(p.generation, %s) FROM %s AS p)", known(v), qualified(v.Schema, v.Pointer()))
	items, group := merging(v.Layout, columns)
	return fmt.Sprintf(`(SELECT %s
FROM (SELECT %s, %s, %d AS %s FROM %s
	UNION ALL SELECT %[2]s, -1, %[5]s FROM %[7]s) AS e
WHERE e.%[3]s = ANY (ARRAY[%[8]s, -1]) AND e.%[5]s >= %[8]s%[9]s)`,
		items, stored, generation, math.MaxInt32, epoch, qualified(v.Schema, v.Batch()), relation(v), live, group)
}

// merging is the select list and the GROUP BY that make one row of all rows of relation e with one key. Rows that are
// appended are each there once.
func merging(l job.Layout, columns []string) (list, group string) {
	items := of("e", columns)
	if l.Shape != job.Rows {
		keys := items[:len(l.Keys)]
		items = slices.Concat(keys, aggregates(l))
		if len(keys) > 0 {
			group = "\nGROUP BY " + strings.Join(keys, ", ")
		}
	}
	return strings.Join(items, ", "), group
}

func of(alias string, columns []string) []string {
	out := make([]string, len(columns))
	for i, c := range columns {
		out[i] = alias + "." + c
	}
	return out
}
