package query

import (
	"fmt"

	"github.com/kappactl/kappactl/internal/job"
)

// The paths of the job file that this package reports on.
const (
	pathQuery = "query"
	pathServe = "serve"
)

// refusals collects what is wrong with one job. Its owner is the goroutine that compiles.
type refusals struct {
	spec     *job.Spec
	problems job.Problems
}

// add reports a cause at a byte offset of the query (-1: unknown), with its cure.
func (r *refusals) add(at int, cause, cure string) {
	p := r.spec.ProblemAt(pathQuery, max(at, 0), job.DuckDBSQL, cause, cure)
	for _, q := range r.problems {
		if q == p {
			return
		}
	}
	r.problems = append(r.problems, p)
}

// serve reports a cause below serve.
func (r *refusals) serve(path, cause, cure string) {
	r.problems = append(r.problems, r.spec.Problem(pathServe+"."+path, job.PostgreSQL, cause, cure))
}

// err is the problems found so far, or nil.
func (r *refusals) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	return r.problems
}

// named puts the column before a cause.
func named(name, cause string) string {
	if name == "" {
		return cause
	}
	return fmt.Sprintf("column %q: %s", name, cause)
}
