package query

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/kappactl/kappactl/internal/job"
)

// Fixed holds what a job file has to say so that it shows what is served. Empty values need no change.
type Fixed struct {
	Query       string
	DistinctMax int
}

// fixedMax is the distinct_max that Fix adds.
const fixedMax = 1000

// Fix returns the query of spec with everything written out that Compile changed or assumed: the columns of a star,
// names of columns, the first row of a key as an aggregation, unnest in FROM as a subquery, no ORDER BY that changes
// nothing. It adds distinct_max if the query needs it. Like Compile it returns job.Problems for a query that is
// refused.
func Fix(ctx context.Context, spec *job.Spec) (_ Fixed, err error) {
	session, err := Open(ctx, Config{Memory: compileMemory, plain: true})
	if err != nil {
		return Fixed{}, err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	var out Fixed
	c, _, err := compileWith(ctx, session, spec)
	if err != nil && c != nil && c.wantsMax {
		limited := *spec
		limited.DistinctMax, out.DistinctMax = fixedMax, fixedMax
		c, _, err = compileWith(ctx, session, &limited)
	}
	if err != nil {
		return Fixed{}, err
	}
	if c.plain == nil {
		return out, nil
	}
	dropped := dropOrders(c.plain.child("node"))
	if !dropped && !c.rewritten {
		return out, nil
	}
	text, err := session.write(ctx, c.plain)
	out.Query = lines(text)
	return out, err
}

// dropOrders removes an ORDER BY without LIMIT.
func dropOrders(node tree) bool {
	if hasModifier(node, modifierLimit) || !hasModifier(node, modifierOrder) {
		return false
	}
	modifiers, _ := node["modifiers"].([]any)
	node["modifiers"] = slices.DeleteFunc(modifiers, func(m any) bool { return asTree(m).kind() == modifierOrder })
	return true
}

// lines breaks a query before its clauses.
func lines(text string) string {
	var out strings.Builder
	depth, quote := 0, byte(0)
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case quote != 0:
			if b == quote {
				quote = 0
			}
		case b == '\'' || b == '"':
			quote = b
		case b == '(':
			depth++
		case b == ')':
			depth--
		case b == ' ' && depth == 0 && slices.ContainsFunc([]string{
			"FROM ", "WHERE ", "GROUP BY ", "HAVING ", "ORDER BY ",
			"LIMIT ",
		},
			func(word string) bool { return strings.HasPrefix(text[i+1:], word) }):
			out.WriteByte('\n')
			continue
		}
		out.WriteByte(text[i])
	}
	return out.String()
}
