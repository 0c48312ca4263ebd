package query

import (
	"context"
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

// nameItems gives columns without a name that of their expression, with valid characters.
func (c *compiler) nameItems(ctx context.Context, list []tree) error {
	var have []string
	for _, e := range list {
		have = append(have, nameOf(e))
	}
	free := takenNames(have...)
	for i, e := range list {
		if have[i] != "" || e.class() == classStar {
			continue
		}
		text, err := c.selected(ctx, "SELECT 1", []tree{e})
		if err != nil {
			return err
		}
		name := free.stored(validName(strings.TrimPrefix(text, "SELECT ")), "", i+1)
		e["alias"], c.rewritten = name, true
		c.refused.warn(placeOf(e), fmt.Sprintf("the column has no name and is served as %q", name), "name it: … AS name")
	}
	return nil
}

// validName returns the letters and digits of an expression, with _ between them.
func validName(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return r > 'z' || r < '0' || r > '9' && r < 'a'
	})
	name := strings.Join(words, "_")
	if name == "" {
		return "value"
	}
	return strings.TrimRight(name[:min(len(name), job.MaxIdentifier)], "_")
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
