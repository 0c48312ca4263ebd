package query

import (
	"fmt"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
)

// partitionColumn is the meta column with a record's partition.
const partitionColumn = "_partition"

// nameProblem returns why an output column cannot have a name, or "".
func nameProblem(name string) (cause, cure string) {
	const rename = "name it otherwise: … AS name"
	switch {
	case len(name) > job.MaxIdentifier:
		return fmt.Sprintf("the column name %q has %d bytes, more than %d: PostgreSQL would cut it", name, len(name),
				job.MaxIdentifier),
			"shorten it: … AS name"
	case strings.HasPrefix(name, "_"):
		return fmt.Sprintf("the column name %q begins with _: such names are kept for kappactl", name), rename
	case systemColumn(name):
		return fmt.Sprintf("the column name %q is one that every PostgreSQL table has itself", name), rename
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }):
		return fmt.Sprintf("the column name %q has control characters in it", name), rename
	}
	return "", ""
}

func systemColumn(name string) bool {
	switch strings.ToLower(name) {
	case "ctid", "xmin", "xmax", "cmin", "cmax", "tableoid":
		return true
	}
	return false
}

// names allocates names of stored columns. The goroutine that compiles owns it.
type names struct{ taken map[string]bool }

func takenNames(list ...string) *names {
	n := &names{taken: map[string]bool{}}
	for _, s := range list {
		n.taken[strings.ToLower(s)] = true
	}
	return n
}

// stored returns base + suffix, or another short name with that suffix if it is taken or too long.
func (n *names) stored(base, suffix string, index int) string {
	name := base + suffix
	for i := index; len(name) > job.MaxIdentifier || n.taken[strings.ToLower(name)]; i++ {
		name = fmt.Sprintf("c%d%s", i, suffix)
	}
	n.taken[strings.ToLower(name)] = true
	return name
}
